package ingest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"sandbox/logs/clickhouse"
)

// example is a request with every kind of value in it.
func example() plog.Logs {
	logs := plog.NewLogs()
	r := logs.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "s")
	l := r.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	l.SetTimestamp(pcommon.NewTimestampFromTime(time.Unix(1, 2)))
	a := l.Attributes()
	a.PutInt("int", -7)
	a.PutDouble("double", 1e21)
	a.PutBool("bool", true)
	a.PutEmptyBytes("bytes").FromRaw([]byte{0, 255})
	a.PutEmpty("empty")
	a.PutEmptySlice("list").AppendEmpty().SetStr("<a>")
	a.PutEmptyMap("map").PutInt("k", 1)
	return logs
}

func TestPairs(t *testing.T) {
	t.Parallel()
	want := map[string]string{"int": "-7", "double": "1e+21", "bool": "true", "bytes": "AP8=", "empty": "", "list": `["<a>"]`, "map": `{"k":1}`}
	var rows []Row
	if refused := each(example(), func(r *Row) { rows = append(rows, *r) }); refused != 0 || len(rows) != 1 {
		t.Fatalf("got %d rows, %d refused", len(rows), refused)
	}
	if r := rows[0]; r.Nanoseconds != 1e9+2 || r.Service != "s" || r.TraceID != "" || len(r.Attributes) != len(want) {
		t.Errorf("got %+v", r)
	}
	for _, p := range rows[0].Attributes {
		if want[p.Key] != p.Value {
			t.Errorf("%s is %q, want %q", p.Key, p.Value, want[p.Key])
		}
	}
}

// TestObserved checks that a record without a time gets its time of
// observation.
func TestObserved(t *testing.T) {
	t.Parallel()
	logs := example()
	l := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	l.SetTimestamp(0)
	l.SetObservedTimestamp(5)
	each(logs, func(r *Row) {
		if r.Nanoseconds != 5 {
			t.Errorf("got %d", r.Nanoseconds)
		}
	})
}

// TestTwice checks that the last of several attributes with one name counts,
// whether there are few attributes or many.
func TestTwice(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 40} {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"key":"k%d","value":{"intValue":"1"}}`, i))
		}
		list = append(list, `{"key":"k0","value":{"intValue":"2"}}`)
		logs, err := decode(JSON, []byte(`{"resourceLogs":[{"resource":{"attributes":[`+strings.Join(list, ",")+`]}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		got := pairs(logs.ResourceLogs().At(0).Resource().Attributes())
		if len(got) != n || got[0] != (Pair{"k0", "2"}) {
			t.Errorf("got %v", got)
		}
	}
}

// FuzzDecode decodes requests. None may end the process, and every request that
// is decoded can be written as rows.
func FuzzDecode(f *testing.F) {
	binary, err := (&plog.ProtoMarshaler{}).MarshalLogs(example())
	if err != nil {
		f.Fatal(err)
	}
	text, err := (&plog.JSONMarshaler{}).MarshalLogs(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(int(Protobuf), binary)
	f.Add(int(JSON), text)
	schema := clickhouse.Schema{Columns: []clickhouse.TableColumn{{Name: "Timestamp"}, {Name: "Body"}, {Name: "LogAttributes"}}}
	f.Fuzz(func(t *testing.T, encoding int, body []byte) {
		logs, err := decode(Encoding(encoding&1), body)
		if err != nil {
			return
		}
		b := newBlock()
		each(logs, b.add)
		if _, err := b.batch(schema); err != nil {
			t.Error(err)
		}
	})
}
