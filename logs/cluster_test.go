package logs_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/logs"
	"sandbox/logs/clickhouse"
	"sandbox/test/shards"
)

// cluster returns a service on two servers of its own, which may be killed.
func cluster(t *testing.T) *stage {
	t.Helper()
	s, err := openCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// asking returns a service that asks the servers of a DSN.
func asking(t *testing.T, dsn string, b logs.Budget) *logs.Service {
	t.Helper()
	c, err := clickhouse.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := logs.New(logs.Config{Engine: c, Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantHidden wants a failure to tell callers nothing of the servers' addresses.
func wantHidden(t *testing.T, err *fault.Error) {
	t.Helper()
	if text := err.Error(); strings.Contains(text, "127.0.0.1") || strings.Contains(text, "localhost") {
		t.Errorf("the message names a server: %s", text)
	}
}

// TestRowsOfShards wants each shard to have some of the rows, and the service all.
func TestRowsOfShards(t *testing.T) {
	t.Parallel()
	s := on(t, "cluster")
	all := make([]record, 200)
	for i := range all {
		all[i] = record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": fmt.Sprint(i)}
	}
	service := s.store(t, all...)
	for i, node := range s.shards.Nodes {
		n, err := node.Ask("SELECT count() BETWEEN 1 AND 199 FROM otel.otel_logs_local WHERE ServiceName = '" + service + "'")
		if err != nil || n != "1" {
			t.Errorf("server %d has the wrong number of rows: %s, %v", i, n, err)
		}
	}
	r, err := s.Query(t.Context(), body(t, map[string]any{"sql": "SELECT count() AS n, uniqExact(Body) AS u FROM otel_logs WHERE ServiceName = {s:String}", "parameters": map[string]any{"s": service}}))
	if got := fmt.Sprint(rows(t, r, err)); got != "[map[n:200 u:200]]" {
		t.Errorf("got %s", got)
	}
}

// TestShardAway wants no part of an answer while a shard is away, no row to be lost
// that was said to be stored, and all of them when it is back.
func TestShardAway(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	service := s.store(t, record{"Timestamp": at("2026-03-01T00:10:00Z"), "Body": "a"}, record{"Timestamp": at("2026-03-01T00:10:00Z"), "Body": "b"},
		record{"Timestamp": at("2026-03-01T00:10:00Z"), "Body": "c"}, record{"Timestamp": at("2026-03-01T00:10:00Z"), "Body": "d"})
	one := asking(t, s.shards.Nodes[0].DSN(), ample())
	s.shards.Nodes[1].Kill()
	day := body(t, map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z", "service": service})
	counted := body(t, map[string]any{"sql": "SELECT count() AS n FROM otel_logs"})
	for name, ask := range map[string]func() (logs.Result, error){
		"search":    func() (logs.Result, error) { return one.Search(t.Context(), day) },
		"aggregate": func() (logs.Result, error) { return one.Aggregate(t.Context(), day) },
		"query":     func() (logs.Result, error) { return one.Query(t.Context(), counted) },
	} {
		if _, err := ask(); err == nil {
			t.Errorf("%s: a part was taken for the whole", name)
		} else {
			wantHidden(t, failed(t, err, fault.Unavailable))
		}
	}
	if r, err := one.Describe(t.Context()); err != nil || r.Count != 25 {
		t.Errorf("the table is described by the server that is there: %d columns, %v", r.Count, err)
	}
	if err := s.shards.Nodes[1].Start(); err != nil {
		t.Fatal(err)
	}
	r, err := one.Search(t.Context(), day)
	if got := column(rows(t, r, err), "Body"); got != "a b c d" {
		t.Errorf("got %q when the shard is back", got)
	}
}

// long returns a statement over all shards that runs until it is ended.
func (s *stage) long(t *testing.T, mark string) []byte {
	t.Helper()
	all := make([]record, 64)
	for i := range all {
		all[i] = record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": fmt.Sprint(i)}
	}
	s.store(t, all...)
	return body(t, map[string]any{"sql": "SELECT count() AS `" + mark + "` FROM otel_logs AS l CROSS JOIN numbers(10000000) AS n WHERE arrayExists(x -> sipHash64(l.Body, n.number, x) = 1, range(100))"})
}

// runs returns how many statements with a mark a server runs.
func runs(t *testing.T, node *shards.Node, mark string) (string, error) {
	t.Helper()
	if err := t.Context().Err(); err != nil {
		t.Fatal(err)
	}
	return node.Ask("SELECT count() FROM system.processes WHERE query LIKE '%" + mark + "%' AND query NOT LIKE '%system.processes%'")
}

// awaitOn waits until a server runs a statement with a mark.
func awaitOn(t *testing.T, node *shards.Node, mark string) {
	t.Helper()
	for {
		if n, err := runs(t, node, mark); err != nil {
			t.Fatal(err)
		} else if n != "0" {
			return
		}
	}
}

// awaitGone waits until a server no longer runs a statement with a mark. libchdb, of
// which the servers are made, now and then aborts as it ends a statement of another
// server, which ends the statement too.
func awaitGone(t *testing.T, node *shards.Node, mark string) {
	t.Helper()
	for n, err := runs(t, node, mark); err == nil && n != "0"; n, err = runs(t, node, mark) {
	}
}

// TestShardDies kills a shard while it works on a statement of another server.
func TestShardDies(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	one := asking(t, s.shards.Nodes[0].DSN(), ample())
	const mark = "a statement whose shard dies"
	statement := s.long(t, mark)
	ended := make(chan error, 1)
	go func() {
		_, err := one.Query(t.Context(), statement)
		ended <- err
	}()
	awaitOn(t, s.shards.Nodes[1], mark)
	s.shards.Nodes[1].Kill()
	wantHidden(t, failed(t, <-ended, fault.Unavailable))
}

// TestLeaveCluster wants a statement to end on all shards when its client leaves.
func TestLeaveCluster(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	const mark = "a statement that is left"
	statement := s.long(t, mark)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Query(ctx, statement)
		ended <- err
	}()
	for _, node := range s.shards.Nodes {
		awaitOn(t, node, mark)
	}
	leave()
	failed(t, <-ended, fault.Canceled)
	for _, node := range s.shards.Nodes {
		awaitGone(t, node, mark)
	}
}

// TestTimeOnCluster wants a statement to end on all shards when its time is over.
func TestTimeOnCluster(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	const mark = "a statement that takes too long"
	statement := s.long(t, mark)
	b := ample()
	b.Time = time.Second
	_, err := asking(t, s.shards.DSN(), b).Query(t.Context(), statement)
	failed(t, err, fault.Timeout)
	for _, node := range s.shards.Nodes {
		awaitGone(t, node, mark)
	}
}

// TestLimitsOfCluster wants the limits of a statement to hold over all shards.
func TestLimitsOfCluster(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	s.store(t, record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": "1"}, record{"Timestamp": at("2026-03-01T00:00:00Z"), "Body": "2"})
	for name, c := range map[string]struct {
		bound func(*logs.Budget)
		sql   string
		kind  fault.Kind
	}{
		"rows read":    {func(b *logs.Budget) { b.ReadRows = 10 }, "SELECT count() AS n FROM otel_logs CROSS JOIN numbers(100) AS m", fault.BudgetExceeded},
		"memory":       {func(b *logs.Budget) { b.Memory = 1 << 20 }, "SELECT groupArray(toString(n.number)) AS a FROM otel_logs AS l CROSS JOIN numbers(1000000) AS n", fault.BudgetExceeded},
		"rows":         {func(b *logs.Budget) { b.ResultRows = 10 }, "SELECT n.number FROM otel_logs AS l CROSS JOIN numbers(100) AS n", fault.ResultTooLarge},
		"bytes":        {func(b *logs.Budget) { b.ResultBytes = 1000 }, "SELECT repeat(l.Body, 1000) AS x FROM otel_logs AS l LIMIT 2", fault.ResultTooLarge},
		"a shard's no": {func(*logs.Budget) {}, "SELECT throwIf(Body != '', 'no') AS x FROM otel_logs", fault.SQLError},
	} {
		t.Run(name, func(t *testing.T) {
			for _, node := range s.shards.Nodes { // see awaitGone
				if err := node.Revive(); err != nil {
					t.Fatal(err)
				}
			}
			b := ample()
			c.bound(&b)
			_, err := asking(t, s.shards.Nodes[0].DSN(), b).Query(t.Context(), body(t, map[string]any{"sql": c.sql}))
			wantHidden(t, failed(t, err, c.kind))
		})
	}
}

// TestHostsAway asks what needs no shard, of hosts of which some do not answer.
func TestHostsAway(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	both := strings.TrimPrefix(s.shards.DSN(), "http://default@")
	for name, dsn := range map[string]string{
		"in order":         "http://default@" + both,
		"in turn":          "http://default@" + both + "&connection_open_strategy=round_robin",
		"at random":        "http://default@" + both + "&connection_open_strategy=random",
		"one is silent":    "http://default@" + silent.Addr().String() + "," + both,
		"one is not there": "http://default@127.0.0.1:1," + both,
	} {
		t.Run(name, func(t *testing.T) {
			service := asking(t, dsn, ample())
			one := body(t, map[string]any{"sql": "SELECT 1 AS one"})
			ask := func() error { _, err := service.Query(t.Context(), one); return err }
			for i, node := range s.shards.Nodes {
				together := make(chan error, 8) // so that connections to both wait for use
				for range cap(together) {
					go func() { together <- ask() }()
				}
				for range cap(together) {
					if err := <-together; err != nil {
						t.Errorf("both are there: %v", err)
					}
				}
				node.Kill()
				for range 8 {
					if err := ask(); err != nil {
						t.Errorf("host %d is away: %v", i, err)
					}
				}
				if err := node.Start(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	for _, node := range s.shards.Nodes {
		node.Kill()
	}
	_, err = asking(t, s.shards.DSN(), ample()).Query(t.Context(), body(t, map[string]any{"sql": "SELECT 1 AS one"}))
	wantHidden(t, failed(t, err, fault.Unavailable))
}
