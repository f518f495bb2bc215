package clickhouse_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
)

// liar starts a server that answers the driver's first question as ClickHouse
// does, and everything else with answer.
func liar(t *testing.T, answer http.HandlerFunc) *clickhouse.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("default_format") == "Native" && !q.Has("query") {
			_, _ = w.Write(greeting(t))
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	c, err := clickhouse.Open(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func greeting(t *testing.T) []byte {
	t.Helper()
	text := func(s string) *proto.ColStr {
		c := new(proto.ColStr)
		c.Append(s)
		return c
	}
	columns := proto.Input{
		{Name: "displayName()", Data: text("liar")}, {Name: "version()", Data: text("26.7.1.1")},
		{Name: "revision()", Data: &proto.ColUInt32{54460}}, {Name: "timezone()", Data: text("UTC")},
	}
	var b proto.Buffer
	block := proto.Block{Rows: 1, Columns: len(columns)}
	if err := block.EncodeBlock(&b, 54460, columns); err != nil {
		t.Fatal(err)
	}
	return b.Buf
}

const whole = `{"meta":[{"name":"v","type":"UInt8"}],"data":[{"v":1}],"rows":1,"statistics":{"elapsed":0.1,"rows_read":1,"bytes_read":1}}`

// hang writes text and then cuts the connection.
func hang(w http.ResponseWriter, text string) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = buffer.WriteString(text)
	_ = buffer.Flush()
	_ = conn.Close()
}

func TestLiars(t *testing.T) {
	t.Parallel()
	page := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { hang(w, text) }
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		kind   fault.Kind // 0 for a good answer
	}{
		"the truth":              {page(200, whole), 0},
		"nothing":                {page(200, ""), fault.Upstream},
		"a page":                 {page(200, "<html>welcome</html>"), fault.Upstream},
		"another document":       {page(200, `{"hello":"world"}`), fault.Upstream},
		"an array":               {page(200, `[1,2]`), fault.Upstream},
		"a cut document":         {page(200, whole[:60]), fault.Upstream},
		"no data":                {page(200, strings.Replace(whole, `"data":[{"v":1}],`, "", 1)), fault.Upstream},
		"data that are no rows":  {page(200, strings.Replace(whole, `[{"v":1}]`, `{}`, 1)), fault.Upstream},
		"no count":               {page(200, strings.Replace(whole, `"rows":1,`, "", 1)), fault.Upstream},
		"two documents":          {page(200, whole+whole), fault.Upstream},
		"bytes that are no text": {page(200, strings.Replace(whole, `"v":1`, "\"v\":\"\xff\"", 1)), fault.Upstream},
		"an error page":          {page(500, "<html>sorry</html>"), fault.Upstream},
		"a gateway's 502":        {page(502, "bad gateway"), fault.Upstream},
		"a gateway's 503":        {page(503, "try later"), fault.Unavailable},
		"a redirect to nowhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, fault.Unavailable},
		"an exception":            {page(404, "Code: 47. DB::Exception: Unknown identifier x. (UNKNOWN_IDENTIFIER) (version 26.7.1.1)"), fault.SQLError},
		"an exception with 200":   {page(200, "Code: 47. DB::Exception: Unknown identifier x. (UNKNOWN_IDENTIFIER) (version 26.7.1.1)"), fault.Upstream},
		"an exception's tail":     {page(200, whole[:60]+"\r\n__exception__\r\nCode: 241. DB::Exception: oh (MEMORY_LIMIT_EXCEEDED)"), fault.Upstream},
		"hangs up at once":        {raw(""), fault.Unavailable},
		"half a header":           {raw("HTTP/1.1 200 OK\r\nContent-Le"), fault.Unavailable},
		"no HTTP":                 {raw("\x00\x01\x02\x03 what?\r\n\r\n"), fault.Unavailable},
		"half a body":             {raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + whole), fault.Unavailable},
		"half of its chunks":      {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3c\r\n" + whole[:60] + "\r\n"), fault.Unavailable},
		"whole but for the chunk": {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n79\r\n" + whole + "\r\n"), fault.Upstream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := liar(t, tt.answer)
			r, err := c.Query(t.Context(), clickhouse.Request{SQL: "SELECT 1 AS v"})
			check(t, tt.kind, err)
			if tt.kind == 0 && (r.Count != 1 || string(r.Rows) != `[{"v":1}]`) {
				t.Errorf("got %+v", r)
			}
			if tt.kind != fault.Upstream { // the body of an insert's answer is not read for more than an exception
				err = c.Insert(t.Context(), clickhouse.Insertion{Format: "JSONEachRow", Body: strings.NewReader("{}")})
				check(t, tt.kind, err)
			}
		})
	}
}

// TestStrangers queries servers that are not ClickHouse. They reply to the
// driver's first question already with status 200, but not as ClickHouse does.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a page": "<html>It works!</html>", "nothing": "", "ok": "Ok.\n", "a document": `{"status":"green"}`, "noise": strings.Repeat("\xff", 300),
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		c, err := clickhouse.Open(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Query(t.Context(), clickhouse.Request{SQL: "SELECT 1"}); !fault.Is(err, fault.Upstream) {
			t.Errorf("%s: got %+v", name, err)
		}
		_ = c.Close()
		s.Close()
	}
}

// check checks that err is of kind want, or that there is none if want is 0.
func check(t *testing.T, want fault.Kind, err error) {
	t.Helper()
	if want == 0 && err != nil || want != 0 && !fault.Is(err, want) {
		t.Errorf("got %+v, want %s", err, want)
	}
}

// TestSilence queries a server that accepts a query and never answers.
func TestSilence(t *testing.T) {
	t.Parallel()
	asked, gone := make(chan bool, 1), make(chan bool, 1)
	c := liar(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- true
		<-r.Context().Done()
		gone <- true
	})
	_, err := c.Query(t.Context(), clickhouse.Request{SQL: "SELECT 1", Limits: clickhouse.Limits{Time: time.Millisecond}})
	check(t, fault.Timeout, err)
	<-asked
	<-gone // the server has noticed that the client disconnected
}

// TestEndlessAnswer queries a server whose answer has no end.
func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	c := liar(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	_, err := c.Query(t.Context(), clickhouse.Request{SQL: "SELECT 1", Limits: clickhouse.Limits{ResultBytes: 1 << 20}})
	check(t, fault.ResultTooLarge, err)
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c, err := clickhouse.Open("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Query(t.Context(), clickhouse.Request{SQL: "SELECT 1"})
	check(t, fault.Unavailable, err)
}

func TestDSN(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"", "localhost:8123", "clickhouse://localhost:9000", "tcp://localhost:9000", "http://", "http://user:secret@host:port/", "http://u:secret@h/?dial_timeout=soon"} {
		if _, err := clickhouse.Open(dsn); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", dsn, err)
		}
	}
	for _, dsn := range []string{"http://localhost:8123", "https://u:p@h1:8443,h2:8443/db?max_threads=2", "https://h/?secure=true"} {
		c, err := clickhouse.Open(dsn)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		_ = c.Close()
	}
}
