package logs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/logs"
	"sandbox/logs/clickhouse"
)

func TestRate(t *testing.T) {
	t.Parallel()
	b := logs.DefaultBudget()
	b.PerMinute = 3
	s, err := logs.New(logs.Config{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if a, err := s.Admit("one"); err != nil || a.Limit != 3 || a.Remaining != 2-i || a.Reset <= 0 || a.Reset > time.Minute {
			t.Errorf("got %+v, %v", a, err)
		}
	}
	a, err := s.Admit("one")
	if p := failed(t, err, fault.RateLimited); p.RetryAfter <= 0 || p.RetryAfter > time.Minute || a.Remaining != 0 {
		t.Errorf("got %+v, %+v", a, p)
	}
	if _, err := s.Admit("another"); err != nil {
		t.Errorf("another key is refused: %v", err)
	}
}

// slow returns a statement that runs until it is ended. mark distinguishes it
// from others.
func slow(t *testing.T, mark string) []byte {
	return body(t, map[string]any{"sql": "SELECT count() AS `" + mark + "` FROM numbers(100000) AS a, numbers(10000000) AS b WHERE sipHash64(a.number, b.number) = 1"})
}

// running returns the number of statements with a mark that the engine runs.
func (s *stage) running(t *testing.T, mark string) string {
	t.Helper()
	r, err := s.client.Query(t.Context(), clickhouse.Request{SQL: "SELECT toString(count()) AS n FROM system.processes WHERE query LIKE {m:String} AND query NOT LIKE '%system.processes%'", Params: map[string]string{"m": "%" + mark + "%"}})
	if err != nil {
		t.Fatal(err)
	}
	var counted []map[string]any
	if err := json.Unmarshal(r.Rows, &counted); err != nil {
		t.Fatal(err)
	}
	return column(counted, "n")
}

// TestPlaces fills all places of running queries, and frees them by
// disconnecting.
func TestPlaces(t *testing.T) {
	t.Parallel()
	st := on(t, "now")
	b := ample()
	b.Queries = 2
	s, err := logs.New(logs.Config{Engine: st.client, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	const mark = "a query in one of two places"
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Query(ctx, slow(t, mark))
			ended <- err
		}()
	}
	for st.running(t, mark) != "2" { // only the engine knows when both are running
	}
	_, err = s.Query(t.Context(), body(t, map[string]any{"sql": "SELECT 1"}))
	if p := failed(t, err, fault.RateLimited); p.RetryAfter <= 0 {
		t.Errorf("got %+v", p)
	}
	leave()
	for range 2 {
		failed(t, <-ended, fault.Canceled)
	}
	left := time.Now()
	for st.running(t, mark) != "0" {
	}
	t.Logf("gone from the engine %v after their clients", time.Since(left))
	if _, err := s.Query(t.Context(), body(t, map[string]any{"sql": "SELECT 1"})); err != nil {
		t.Errorf("the places are not free: %v", err)
	}
}

// TestDeath kills the engine while a statement runs. The service must report
// that, and answer again when the engine is back.
func TestDeath(t *testing.T) {
	t.Parallel()
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	const mark = "a query on an engine that dies"
	ended := make(chan error, 1)
	go func() {
		_, err := s.Query(t.Context(), slow(t, mark))
		ended <- err
	}()
	for s.running(t, mark) != "1" {
	}
	if err := syscall.Kill(<-s.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	failed(t, <-ended, fault.Unavailable)
	pid := <-s.pid
	if err := s.engine.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Query(t.Context(), body(t, map[string]any{"sql": "SELECT 1"})); err != nil {
		t.Error(err)
	}
	// An engine that does not answer any more.
	b := logs.DefaultBudget()
	b.Time = time.Millisecond
	hasty, err := logs.New(logs.Config{Engine: s.client, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// A thread that has not stopped yet could still answer.
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	_, err = hasty.Query(t.Context(), body(t, map[string]any{"sql": "SELECT 1"}))
	failed(t, err, fault.Timeout)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// TestLiars queries servers that are not ClickHouse. (How the driver's failures
// for each kind of answer are classified is tested in package clickhouse.)
func TestLiars(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		kind   fault.Kind
	}{
		"a page":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, fault.Upstream},
		"an error": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, fault.Upstream},
		"no rights": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-ClickHouse-Exception-Code", "516")
			w.WriteHeader(403)
			fmt.Fprint(w, "Code: 516. DB::Exception: default: Authentication failed. (AUTHENTICATION_FAILED)")
		}, fault.Upstream},
		"too busy": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			t.Cleanup(server.Close)
			c, err := clickhouse.Open(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			s, err := logs.New(logs.Config{Engine: c, Budget: logs.DefaultBudget()})
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Describe(t.Context())
			failed(t, err, tt.kind)
			_, err = s.Search(t.Context(), []byte(member("")))
			failed(t, err, tt.kind)
		})
	}
}
