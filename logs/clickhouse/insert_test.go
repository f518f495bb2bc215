package clickhouse_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
)

// count returns how many rows a service has.
func count(t *testing.T, service string) string {
	t.Helper()
	return one(t, clickhouse.Request{SQL: "SELECT toString(count()) AS v FROM otel.otel_logs WHERE ServiceName = {s:String}", Params: map[string]string{"s": service}})
}

// service returns a name that no other run of the tests has used.
func service(t *testing.T) string { return fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()) }

func TestInsert(t *testing.T) {
	t.Parallel()
	name := service(t)
	now := time.Now().UTC()
	stamp := now.Format("2006-01-02 15:04:05.000000000")
	line := fmt.Sprintf(`{"Timestamp":"%s","ServiceName":"%s","Body":"a\u0000b\"'\\","LogAttributes":{"k":"v"}}`+"\n", stamp, name)
	var binary proto.Buffer
	binary.PutInt64(now.UnixNano())
	binary.PutString(name)
	binary.PutString("\x00\xff;\n")
	for format, i := range map[string]clickhouse.Insertion{
		"JSONEachRow": {Columns: []string{"Timestamp", "ServiceName", "Body", "LogAttributes"}, Body: strings.NewReader(line + line)},
		"RowBinary":   {Columns: []string{"Timestamp", "ServiceName", "Body"}, Body: strings.NewReader(string(binary.Buf))},
		"CSV":         {Columns: []string{"Timestamp", "ServiceName"}, Body: strings.NewReader(stamp + "," + name + "\n")},
		"Native":      {Columns: []string{"Timestamp", "ServiceName"}, Body: strings.NewReader(native(t, now, name))},
	} {
		i.Format = format
		if err := engine.Insert(t.Context(), i); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
	if n := count(t, name); n != "5" {
		t.Errorf("got %s rows, want 5", n)
	}
	sql := "SELECT hex(Body) || toString(Timestamp) || LogAttributes['k'] AS v FROM otel.otel_logs WHERE ServiceName = {s:String} AND Body != '' ORDER BY v LIMIT 1"
	if got, want := one(t, clickhouse.Request{SQL: sql, Params: map[string]string{"s": name}}), "00FF3B0A"+stamp; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// native returns one row in the format of ClickHouse's own protocol, in the
// variant that is read when no revision is given.
func native(t *testing.T, at time.Time, service string) string {
	t.Helper()
	stamps := new(proto.ColDateTime64).WithPrecision(9)
	stamps.Append(at)
	names := new(proto.ColStr).LowCardinality()
	names.Append(service)
	var b proto.Buffer
	columns := proto.Input{{Name: "Timestamp", Data: stamps}, {Name: "ServiceName", Data: names}}
	block := proto.Block{Rows: 1, Columns: len(columns)}
	if err := block.EncodeRawBlock(&b, 0, columns); err != nil {
		t.Fatal(err)
	}
	return string(b.Buf)
}

// TestLongInsert sends more than all buffers on the way can hold.
func TestLongInsert(t *testing.T) {
	t.Parallel()
	const n = 50_000
	name := service(t)
	pr, pw := io.Pipe()
	go func() {
		stamp := time.Now().UTC().Format("2006-01-02 15:04:05")
		for i := range n {
			_, _ = fmt.Fprintf(pw, `{"Timestamp":"%s.%09d","ServiceName":"%s","Body":"%s"}`+"\n", stamp, i, name, strings.Repeat("x", 100))
		}
		_ = pw.Close()
	}()
	if err := engine.Insert(t.Context(), clickhouse.Insertion{Columns: []string{"Timestamp", "ServiceName", "Body"}, Format: "JSONEachRow", Body: pr}); err != nil {
		t.Fatal(err)
	}
	if got := count(t, name); got != fmt.Sprint(n) {
		t.Errorf("got %s rows, want %d", got, n)
	}
}

func TestBadInserts(t *testing.T) {
	t.Parallel()
	broken := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text), readerFunc(func([]byte) (int, error) { return 0, errors.New("the source broke") }))
	}
	good := func(name string) string {
		return fmt.Sprintf(`{"Timestamp":"%s","ServiceName":"%s"}`+"\n", time.Now().UTC().Format(time.DateTime), name)
	}
	for name, tt := range map[string]struct {
		column, format string
		body           func(service string) io.Reader
		kind           fault.Kind
	}{
		"no such column":      {"nope", "JSONEachRow", func(s string) io.Reader { return strings.NewReader(good(s)) }, fault.SQLError},
		"a hostile column":    {"x`) VALUES (1) -- ", "JSONEachRow", func(s string) io.Reader { return strings.NewReader(good(s)) }, fault.SQLError},
		"no such format":      {"ServiceName", "Nonsense", func(s string) io.Reader { return strings.NewReader(good(s)) }, fault.SQLError},
		"no data":             {"ServiceName", "JSONEachRow", func(string) io.Reader { return strings.NewReader("") }, 0},
		"garbage behind":      {"ServiceName", "JSONEachRow", func(s string) io.Reader { return strings.NewReader(good(s) + "garbage") }, fault.SQLError},
		"cut off":             {"ServiceName", "JSONEachRow", func(s string) io.Reader { return strings.NewReader(good(s) + good(s)[:20]) }, fault.SQLError},
		"a source that fails": {"ServiceName", "JSONEachRow", func(s string) io.Reader { return broken(good(s)) }, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(t)
			err := engine.Insert(t.Context(), clickhouse.Insertion{Columns: []string{"Timestamp", tt.column}, Format: tt.format, Body: tt.body(s)})
			check(t, tt.kind, err)
			if n := count(t, s); n != "0" {
				t.Errorf("%s rows of it are stored", n)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestSchema(t *testing.T) {
	t.Parallel()
	s, err := engine.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !s.Has("Timestamp") || !s.Has("Body") || s.Has("nope") || !strings.Contains(s.SortingKey, "Timestamp") {
		t.Errorf("got %+v", s)
	}
	for _, c := range s.Columns {
		if c.Name == "ServiceName" && (c.Type != "LowCardinality(String)" || c.IsInSortingKey != 1) {
			t.Errorf("got %+v", c)
		}
	}
	var names []string
	for _, c := range s.Result.Columns {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "name type default_kind default_expression comment codec is_in_sorting_key" {
		t.Errorf("a description has the columns %s", got)
	}
}
