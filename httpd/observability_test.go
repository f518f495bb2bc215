package httpd_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/httpd"
	"sandbox/logs"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/logs/ingest"
	"sandbox/test/programs"
)

// problem holds a failure of the log queries to the spec.
func (a answer) problem(t testing.TB, status int, code string) answer {
	t.Helper()
	a.want(t, status, code)
	a.private(t)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	members := map[string]bool{"type": true, "title": true, "status": true, "code": true, "message": true, "correlationId": true, "prerequisite": false, "fields": false}
	for name := range a.json {
		if _, known := members[name]; !known {
			t.Errorf("the member %s is not in the specification", name)
		}
	}
	for name, required := range members {
		if required && a.json[name] == nil {
			t.Errorf("no member %s: %s", name, a.text)
		}
	}
	if a.json["status"] != float64(status) || a.json["type"] != "urn:sandbox:problem:"+code || a.json["correlationId"] != a.header.Get("X-Request-Id") {
		t.Errorf("got %s", a.text)
	}
	fields, _ := a.json["fields"].([]any)
	for _, f := range fields {
		if f := f.(map[string]any); len(f) != 3 || f["field"] == nil || f["code"] == nil || f["message"] == nil {
			t.Errorf("got the field %v", f)
		}
	}
	return a
}

func (a answer) private(t testing.TB) answer {
	t.Helper()
	if got := a.header["Cache-Control"]; len(got) != 1 || got[0] != "private, no-store" {
		t.Errorf("%d: Cache-Control %q", a.status, got)
	}
	return a
}

const day = `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`

// operations are the four, each with a body that is right.
var operations = []struct {
	method, path, body string
	statuses           []int // of failures (spec, "Errors")
}{
	{"GET", "/observability/schema", "", []int{401, 403, 429, 502, 503, 504}},
	{"POST", "/observability/query", `{"sql":"SELECT 1 AS a"}`, []int{400, 401, 403, 413, 422, 429, 502, 503, 504}},
	{"POST", "/observability/logs/search", day, []int{400, 401, 403, 422, 429, 502, 503, 504}},
	{"POST", "/observability/logs/aggregate", day, []int{400, 401, 403, 422, 429, 502, 503, 504}},
}

// TestObservabilityRefuses asks each operation in every wrong way: it answers
// with a problem, of a status that the spec lists for it.
func TestObservabilityRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		base   string
		change func(*httpd.Config)
	}{
		"alone":  {"/v1", func(*httpd.Config) {}},
		"hosted": {"/v1", func(c *httpd.Config) { c.Hosted = true }},
		"prefix": {"/v1/team", func(c *httpd.Config) { c.Prefix = "team" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tt.change)
			elsewhere := s.newKey(auth.Request{Permissions: api.Permissions(), Environment: "elsewhere"})
			cookie := func(r *http.Request) {
				r.Header.Del("Authorization")
				r.AddCookie(&http.Cookie{Name: "Authorization", Value: "Bearer " + s.key})
				r.AddCookie(&http.Cookie{Name: "session", Value: s.key})
			}
			for _, op := range operations {
				path := tt.base + op.path
				listed := func(a answer) {
					t.Helper()
					if !slices.Contains(op.statuses, a.status) {
						t.Errorf("%s answers %d, which is not among %v", path, a.status, op.statuses)
					}
				}
				a := s.ask(op.method, path, op.body).problem(t, 503, "unavailable")
				if p, _ := a.json["prerequisite"].(string); !strings.Contains(p, "chdb-lib") || !strings.Contains(p, "clickhouse-dsn") {
					t.Errorf("the prerequisite is %q", p)
				}
				listed(s.ask(op.method, path, op.body, cookie).problem(t, 401, "unauthenticated"))
				listed(s.ask(op.method, path, op.body, bearer(s.onlyKey(api.MayUseBoxes))).problem(t, 403, "permission_denied"))
				listed(s.ask(op.method, path, op.body, bearer(s.onlyKey(api.MayWriteLogs))).problem(t, 403, "permission_denied"))
				listed(s.ask(op.method, path, op.body, bearer(elsewhere)).problem(t, 403, "permission_denied"))
				listed(s.ask(op.method, path+"?x=%zz", op.body).problem(t, 503, "unavailable"))
				for _, wrong := range []string{`{`, `[]`, "\x00", `{"x":1}`, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`} {
					listed(s.ask(op.method, path, wrong).private(t))
				}
				listed(s.ask(op.method, path, op.body, header("Content-Type", "text/plain")).private(t))
				for _, method := range []string{"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"} {
					if method == op.method {
						continue
					}
					a := s.ask(method, path, "")
					if method != "HEAD" {
						a.problem(t, 405, "method_not_allowed")
					}
					if a.header.Get("Allow") != op.method || a.status != 405 {
						t.Errorf("%s %s: %d, Allow %q", method, path, a.status, a.header.Get("Allow"))
					}
				}
			}
			for _, path := range []string{"/observability/", "/observability/nope", "/observability/schema/", "/observability/logs", "/observability/query:x"} {
				s.ask("GET", tt.base+path, "").problem(t, 404, "not_found")
				s.ask("GET", tt.base+path, "", cookie).problem(t, 401, "unauthenticated")
			}
			s.ask("POST", tt.base+"/observability/query", `{"sql":"`+strings.Repeat("x", 1<<20)+`"}`).problem(t, 413, "too_large")
			s.ask("POST", tt.base+"/observability/logs/search", `{"from":"`+strings.Repeat("x", 1<<20)+`"}`).problem(t, 400, "malformed")
			a := s.ask("POST", tt.base+"/observability/logs/search", `{}`).problem(t, 400, "malformed")
			if fields := a.json["fields"].([]any); len(fields) != 2 {
				t.Errorf("got %v", fields)
			}
			s.ask("POST", tt.base+"/observability/logs/search", strings.Replace(day, "02T", "09T", 1)).problem(t, 422, "invalid_interval")
			s.ask("POST", tt.base+"/observability/query", `{"sql":"DROP TABLE otel.otel_logs"}`).problem(t, 422, "sql_rejected")
		})
	}
}

func TestObservabilityRate(t *testing.T) {
	t.Parallel()
	b := logs.DefaultBudget()
	b.PerMinute = 3
	service, err := logs.New(logs.Config{Budget: b})
	must(t, err)
	s := start(t, func(c *httpd.Config) { c.Logs = service })
	for i, op := range []string{`{"sql":"SELECT 1"}`, `{`, `{"sql":"DROP TABLE x"}`} { // refused ones count
		a := s.ask("POST", "/v1/observability/query", op)
		if a.status == 429 || a.header.Get("RateLimit-Limit") != "3" || a.header.Get("RateLimit-Remaining") != strconv.Itoa(2-i) {
			t.Errorf("got %d with %v", a.status, a.header)
		}
	}
	a := s.ask("GET", "/v1/observability/schema", "").problem(t, 429, "rate_limited")
	for _, name := range []string{"Retry-After", "RateLimit-Reset"} {
		if n, err := strconv.Atoi(a.header.Get(name)); err != nil || n < 1 || n > 60 || name == "Retry-After" && n > 20 {
			t.Errorf("%s is %q", name, a.header.Get(name))
		}
	}
	s.ask("GET", "/v1/observability/schema", "", bearer(s.onlyKey(api.MayQueryLogs))).problem(t, 503, "unavailable")
	for range 10 { // the local socket has no rate
		if a := s.local("GET", "/v1/observability/schema", "").problem(t, 503, "unavailable"); a.header.Get("RateLimit-Limit") != "" {
			t.Errorf("the socket has the rate %v", a.header)
		}
	}
}

// withEngine starts a service on a real engine.
func withEngine(t *testing.T) (*service, *clickhouse.Client) {
	t.Helper()
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), HelperDir: programs.Dir()})
	must(t, err)
	t.Cleanup(func() { check(t, e.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	must(t, e.Wait(ctx))
	c, err := clickhouse.Dial(e.Dial)
	must(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	b := logs.DefaultBudget()
	b.Time = 5 * time.Minute // a query that is looked for may not end before it is found
	service, err := logs.New(logs.Config{Engine: c, Budget: b})
	must(t, err)
	writer := ingest.NewWriter(c)
	t.Cleanup(writer.Close)
	return start(t, func(c *httpd.Config) { c.Logs, c.Ingest = service, writer }), c
}

func TestObservability(t *testing.T) {
	t.Parallel()
	s, engine := withEngine(t)
	for _, op := range operations {
		a := s.ask(op.method, "/v1"+op.path, op.body, bearer(s.onlyKey(api.MayQueryLogs))).want(t, 200, "").private(t)
		if a.json["rows"] == nil || a.json["columns"] == nil || len(a.json) != 4 || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s", op.path, a.text)
		}
	}
	// A client that goes away takes its query with it.
	const mark = "a query whose client goes away"
	ctx, leave := context.WithCancel(t.Context())
	sql, err := json.Marshal(map[string]string{"sql": "SELECT count() AS `" + mark + "` FROM numbers(100000) AS a, numbers(10000000) AS b WHERE sipHash64(a.number, b.number) = 1"})
	must(t, err)
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/observability/query", strings.NewReader(string(sql)))
	must(t, err)
	bearer(s.key)(req)
	gone := make(chan error, 1)
	go func() {
		resp, err := s.client.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		gone <- err
	}()
	running := func() bool {
		r, err := engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT 1 FROM system.processes WHERE query LIKE '%" + mark + "%' AND query NOT LIKE '%system.processes%'"})
		must(t, err)
		return r.Count > 0
	}
	for !running() { // nothing tells of it but the engine
	}
	leave()
	<-gone
	left := time.Now()
	for running() {
	}
	t.Logf("gone from the engine %v after its client", time.Since(left))
}
