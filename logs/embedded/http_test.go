package embedded_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestHTTP pins the parts of the HTTP interface on which ClickHouse's clients
// depend.
func TestHTTP(t *testing.T) {
	t.Parallel()
	e, _ := engine(t, t.TempDir())
	client := web(t, e)
	for name, tt := range map[string]struct {
		path, body string
		query      url.Values
		status     int
		code       string // X-ClickHouse-Exception-Code
		answer     string // how it begins
	}{
		"ping":                 {path: "/ping", status: 200, answer: "Ok.\n"},
		"another path":         {path: "/nope", status: 404},
		"in the body":          {body: "SELECT 1", status: 200, answer: "1\n"},
		"in the URL":           {query: url.Values{"query": {"SELECT 1"}}, status: 200, answer: "1\n"},
		"in both":              {query: url.Values{"query": {"SELECT"}}, body: "1", status: 200, answer: "1\n"},
		"default format":       {query: url.Values{"default_format": {"CSV"}}, body: "SELECT 'a'", status: 200, answer: "\"a\"\n"},
		"its own format":       {query: url.Values{"default_format": {"CSV"}}, body: "SELECT 'a' FORMAT JSONEachRow", status: 200, answer: "{"},
		"binary":               {body: "SELECT unhex('00ff0a') FORMAT RowBinary", status: 200, answer: "\x03\x00\xff\x0a"},
		"no rows":              {body: "SELECT 1 WHERE 0", status: 200},
		"one semicolon":        {body: "SELECT 1;", status: 200, answer: "1\n"},
		"a parameter":          {query: url.Values{"param_x": {`a\tb`}}, body: "SELECT {x:String} = 'a\tb'", status: 200, answer: "1\n"},
		"a setting":            {query: url.Values{"max_threads": {"1"}}, body: "SELECT getSetting('max_threads')", status: 200, answer: "1\n"},
		"settings of a server": {query: url.Values{"database": {"default"}, "quota_key": {"k"}, "wait_end_of_query": {"1"}, "compress": {"0"}}, body: "SELECT 1", status: 200, answer: "1\n"},
		"a setting unknown":    {query: url.Values{"nonsense": {"1"}}, body: "SELECT 1", status: 404, code: "115"},
		"a setting misread":    {query: url.Values{"max_threads": {"many"}}, body: "SELECT 1", status: 500, code: "36"},
		"the engine's path":    {query: url.Values{"path": {"/"}}, body: "SELECT 1", status: 404, code: "115"},
		"a NUL":                {query: url.Values{"max_threads": {"1\x00"}}, body: "SELECT 1", status: 500, code: "36"},
		"a session":            {query: url.Values{"session_id": {"1"}}, body: "SELECT 1", status: 501, code: "48"},
		"compressed":           {query: url.Values{"compress": {"1"}}, body: "SELECT 1", status: 501, code: "48"},
		"Native":               {query: url.Values{"default_format": {"Native"}}, body: "SELECT 2", status: 501, code: "48"},
		"syntax":               {body: "SELECT (", status: 400, code: "62", answer: "Code: 62. DB::Exception: Syntax error"},
		"nothing":              {status: 400, code: "62"},
		"two statements":       {body: "SELECT 1; SELECT 2", status: 400, code: "62"},
		"half a result":        {body: "SELECT throwIf(number = 2000000) FROM numbers(3000000)", status: 500, code: "395", answer: "Code: 395."},
		"unknown table":        {body: "SELECT * FROM nope", status: 404, code: "60"},
		"a write, read-only":   {query: url.Values{"readonly": {"1"}}, body: "CREATE DATABASE x", status: 500, code: "164"},
		"a file, read-only":    {query: url.Values{"readonly": {"1"}}, body: "SELECT 1 INTO OUTFILE 'x'", status: 500, code: "164"},
		"limits, read-only":    {query: url.Values{"readonly": {"1"}}, body: "SELECT 1 SETTINGS max_threads = 1", status: 500, code: "164"},
		"too long":             {body: "SELECT '" + strings.Repeat("x", 1<<20) + "'", status: 400, code: "62"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.path == "" {
				tt.path = "/"
			}
			r, err := client.Post("http://engine"+tt.path+"?"+tt.query.Encode(), "", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			answer, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != tt.status || r.Header.Get("X-ClickHouse-Exception-Code") != tt.code || !strings.HasPrefix(string(answer), tt.answer) {
				t.Errorf("got %d, code %s: %.300s", r.StatusCode, r.Header.Get("X-ClickHouse-Exception-Code"), answer)
			}
			if tt.path == "/" && tt.status == http.StatusOK && (r.Header.Get("X-ClickHouse-Summary") == "" || r.Header.Get("X-ClickHouse-Query-Id") == "") {
				t.Errorf("headers are missing: %v", r.Header)
			}
		})
	}
}
