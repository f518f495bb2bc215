package logs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/logs"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/test/leak"
	"sandbox/test/members"
	"sandbox/test/programs"
	"sandbox/test/shards"
)

// The tests share engines. Each is started when a test first needs it. One has the
// table as OpenTelemetry makes it now, one as it made it before, and one is a cluster
// of two servers, which have the rows of today's table between them.
var changed sync.Once // the table of the engine "before"

var engines = map[string]func() (*stage, error){}

func TestMain(m *testing.M) { os.Exit(leak.Run(suite{m})) }

type suite struct{ m *testing.M }

func (s suite) Run() int {
	var stop []func()
	var mu sync.Mutex
	for name, open := range map[string]func() (*stage, error){"now": open, "before": open, "cluster": openCluster} {
		engines[name] = sync.OnceValues(func() (*stage, error) {
			st, err := open()
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				stop = append(stop, st.close)
			}
			return st, err
		})
	}
	code := s.m.Run()
	for _, f := range stop {
		f()
	}
	return code
}

// stage is an engine and a service on it.
type stage struct {
	*logs.Service
	client *clickhouse.Client
	engine *embedded.Engine // nil on a cluster
	pid    chan int         // of each child that answers
	shards *shards.Cluster  // nil but on a cluster
	close  func()
}

// pids is a log handler that sends on the pid of each child that answers.
type pids struct {
	slog.Handler
	pid chan int
}

func (p pids) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "pid" {
			p.pid <- int(a.Value.Int64())
		}
		return true
	})
	return nil
}

func (p pids) Enabled(context.Context, slog.Level) bool { return true }

func open() (*stage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		return nil, err
	}
	pid := make(chan int, 10)
	e, err := embedded.Start(ctx, embedded.Options{
		Dir: dir, HelperDir: programs.Dir(), TTL: 40 * 365 * 24 * time.Hour, Logger: slog.New(pids{slog.DiscardHandler, pid}),
	})
	if err != nil {
		return nil, err
	}
	if err := e.Wait(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	c, err := clickhouse.Dial(e.Dial)
	if err != nil {
		return nil, err
	}
	s, err := logs.New(logs.Config{Engine: c, Budget: ample()})
	return &stage{s, c, e, pid, nil, func() { _, _, _ = c.Close(), e.Close(), os.RemoveAll(dir) }}, err
}

// openCluster opens a service on two servers.
func openCluster() (*stage, error) {
	cluster, err := shards.Start(2)
	if err != nil {
		return nil, err
	}
	if err := cluster.Define(); err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	c, err := clickhouse.Open(cluster.DSN())
	if err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	s, err := logs.New(logs.Config{Engine: c, Budget: ample()})
	return &stage{s, c, nil, nil, cluster, func() { _, _ = c.Close(), cluster.Close() }}, err
}

// ample returns a budget that bounds no number of queries, and no time that one takes here.
func ample() logs.Budget {
	b := logs.DefaultBudget()
	b.PerMinute, b.Queries = 1<<30, 1000
	b.Time = 5 * time.Minute // the default was over once on a busy machine
	return b
}

// on returns the stage with a name: "now", "before" or "cluster".
func on(t testing.TB, name string) *stage {
	t.Helper()
	s, err := engines[name]()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// exec runs a statement that writes, on a cluster with the tables of each server. It
// bypasses the service.
func (s *stage) exec(t testing.TB, sql string) {
	t.Helper()
	if s.shards != nil {
		for _, node := range s.shards.Nodes {
			if err := node.Tell(strings.ReplaceAll(sql, "otel.otel_logs", "otel.otel_logs_local")); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.engine.Dial(ctx) }}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post("http://engine/", "", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", sql, text, err)
	}
}

// record is a row to be stored. Members that are missing have their defaults.
type record map[string]any

// at returns a time in the engine's syntax.
func at(s string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t.UTC().Format("2006-01-02 15:04:05.000000000")
}

// store stores rows and returns the name of the service that all of them have.
func (s *stage) store(t testing.TB, rows ...record) string {
	t.Helper()
	service := fmt.Sprintf("%s %d", t.Name(), time.Now().UnixNano())
	var lines strings.Builder
	for _, r := range rows {
		if r["ServiceName"] == nil {
			r["ServiceName"] = service
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	err := s.client.Insert(t.Context(), clickhouse.Insertion{Format: "JSONEachRow", Body: strings.NewReader(lines.String())})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// rows returns the rows of a result, and checks its document against the spec.
func rows(t testing.TB, r logs.Result, err error) []map[string]any {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := r.Document()
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, p := range pieces {
		text = append(text, p...)
	}
	var d struct {
		QueryID    string `json:"queryId"`
		Columns    []struct{ Name, Type string }
		Rows       []map[string]any
		Statistics struct {
			ElapsedMs           *float64
			ReadRows, ReadBytes string
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	members.Equal(t, "the answer", members.Of{
		"length of the query's id": {len(d.QueryID), 36}, "columns": {len(d.Columns) > 0, true}, "rows": {d.Rows != nil, true}, "count of rows": {len(d.Rows), r.Count},
		"elapsed": {d.Statistics.ElapsedMs != nil, true}, "rows read": {d.Statistics.ReadRows != "", true}, "bytes read": {d.Statistics.ReadBytes != "", true},
	})
	return d.Rows
}

// column returns the values of a column, joined.
func column(rows []map[string]any, name string) string {
	var values []string
	for _, r := range rows {
		values = append(values, fmt.Sprint(r[name]))
	}
	return strings.Join(values, " ")
}

// body returns a document with the given members.
func body(t testing.TB, members map[string]any) []byte {
	t.Helper()
	doc, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// failed checks that err is a failure of a kind.
func failed(t testing.TB, err error, want fault.Kind) *fault.Error {
	t.Helper()
	if !fault.Is(err, want) {
		t.Fatalf("got %v, want %s", err, want)
	}
	return fault.Of(err)
}
