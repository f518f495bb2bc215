package metrics

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/test/programs"
)

// engine starts a log engine and waits until it answers.
func engine(t *testing.T, dir string) (*embedded.Engine, *clickhouse.Client) {
	t.Helper()
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, HelperDir: programs.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := clickhouse.Dial(e.Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), e.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := e.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return e, c
}

// The table and the memory answer the same, and the rows outlive the engine. What came
// while there was no engine is stored with what comes next.
func TestTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, c := engine(t, dir)
	var log strings.Builder
	rows, held := &table{engine: c, log: slog.New(slog.NewTextHandler(&log, nil))}, &memory{}
	base := time.Now().Add(-time.Minute).Truncate(20 * time.Second).UnixMilli()
	add := func(n int64, boxes ...string) {
		var samples []Sample
		for i, box := range boxes {
			samples = append(samples, Sample{
				Box: box, At: base + n*1000, Started: base - 5, CPU: n * 1e9, Memory: (100 - n) << 20, Cache: 7, Processes: n,
				Disk: Unknown, DiskRead: Unknown, DiskWrite: int64(i) - 1, NetSent: 1 << 60, NetReceive: 0,
			})
		}
		rows.add(t.Context(), samples)
		held.add(t.Context(), samples)
	}
	same := func(s span) {
		t.Helper()
		got, err := rows.read(t.Context(), s)
		want, _ := held.read(t.Context(), s)
		if err != nil || len(got) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v:\n%+v, %v; in memory\n%+v", s, got, err, want)
		}
	}
	add(0, "box_a", "box_b")
	add(10, "box_a", "box_b")
	add(20, "box_b", "box_a")
	for _, s := range []span{{"box_a", base, base + 60_000, 1000}, {"box_b", base, base + 60_000, 20_000}, {"box_b", base + 10_000, base + 20_000, 1000}} {
		same(s)
	}
	if got, err := rows.read(t.Context(), span{"box_c", 0, base + 60_000, 1000}); err != nil || len(got) != 0 {
		t.Errorf("of no box: %+v, %v", got, err)
	}
	_, _ = c.Close(), e.Close()
	add(30, "box_a")
	add(40, "box_a")
	if _, err := rows.read(t.Context(), span{"box_a", 0, base, 1000}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without an engine: %v", err)
	}
	if n := strings.Count(log.String(), "wait for the log engine"); n != 1 || len(rows.pending) != 2 {
		t.Errorf("%d samples wait, which is told %d times: %s", len(rows.pending), n, log.String())
	}
	_, rows.engine = engine(t, dir)
	add(50, "box_a")
	same(span{"box_a", base, base + 60_000, 1000})
	if len(rows.pending) != 0 {
		t.Errorf("%d samples still wait", len(rows.pending))
	}
}

// A dead engine does not fill the memory.
func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	c, err := clickhouse.Open("http://127.0.0.1:1/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var log strings.Builder
	rows := &table{engine: c, log: slog.New(slog.NewTextHandler(&log, nil))}
	for n := range int64(3) {
		samples := make([]Sample, maxPending/2)
		samples[0].At = n
		rows.add(t.Context(), samples)
	}
	if len(rows.pending) != maxPending || rows.pending[0].At != 1 || !strings.Contains(log.String(), "left out") {
		t.Errorf("%d samples wait from %d on: %s", len(rows.pending), rows.pending[0].At, log.String())
	}
}

// A table that is missing, as on a server where nobody made it, is told of.
func TestNoTable(t *testing.T) {
	t.Parallel()
	e, c := engine(t, t.TempDir())
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return e.Dial(ctx) }}
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine/", strings.NewReader("DROP TABLE otel.sandbox_metrics"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(req)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	_ = answer.Body.Close()
	rows := &table{engine: c, log: slog.New(slog.DiscardHandler)}
	if _, err := rows.read(t.Context(), span{"box_a", 0, 1000, 1000}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "docs/clickhouse.md") {
		t.Error(err)
	}
}
