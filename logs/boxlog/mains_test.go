package boxlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/logs/boxlog"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/logs/ingest"
	"sandbox/spool"
	"sandbox/test/boxes"
	"sandbox/test/programs"
)

// keeping is a real box with a main command, and a real engine that recorders store its
// rows in, one after the other, as daemons would.
type keeping struct {
	*boxes.Box
	engine *clickhouse.Client
	dial   func(context.Context) (net.Conn, error)
	deaf   *atomic.Bool  // the answers of inserts are lost
	late   *atomic.Bool  // the next insert comes to the engine after its sender has given up
	down   *atomic.Bool  // recorders can't reach the engine
	tries  *atomic.Int64 // how often they have asked it in vain
	boxes  *atomic.Int64 // how many boxes the recorder has been told of last
	wait   time.Duration // how long rows may be late
	at     string        // the directory of positions
}

func newKeeping(t *testing.T, script string, change ...func(*options.Box)) *keeping {
	t.Helper()
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), HelperDir: programs.Dir()})
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	must(t, e.Wait(t.Context()))
	k := &keeping{dial: e.Dial, deaf: &atomic.Bool{}, late: &atomic.Bool{}, down: &atomic.Bool{}, tries: &atomic.Int64{}, boxes: &atomic.Int64{}, wait: 10 * time.Second, at: filepath.Join(t.TempDir(), "mains")}
	k.engine, err = clickhouse.Dial(e.Dial)
	must(t, err)
	t.Cleanup(func() { _ = k.engine.Close() })
	command := func(o *options.Box) { o.Name, o.Command = "web", []string{"sh", "-c", script} }
	k.Box = boxes.New(t, append([]func(*options.Box){command}, change...)...)
	return k
}

// record has a recorder store rows until stop is called, which returns when it is closed.
func (k *keeping) record(t *testing.T) (stop func()) {
	t.Helper()
	behind, err := clickhouse.Dial(func(ctx context.Context) (net.Conn, error) {
		conn, err := k.reach(ctx)
		return &lateConn{Conn: deafConn{conn, k.deaf}, late: k.late}, err
	})
	must(t, err)
	asked, err := clickhouse.Dial(func(ctx context.Context) (net.Conn, error) {
		conn, err := k.reach(ctx)
		if err != nil {
			k.tries.Add(1)
		}
		return conn, err
	})
	must(t, err)
	writer := ingest.NewWriter(behind)
	r := boxlog.New(boxlog.Config{
		Writer: writer, Log: slog.New(slog.DiscardHandler), Name: func(context.Context, string) string { return "web" },
		Mains: spool.Read(record.OutputDir(k.Home)), Engine: asked, Positions: k.at, Late: k.wait,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	note := func() {
		recs, err := k.Engine.List(context.WithoutCancel(ctx))
		if err != nil {
			t.Error(err)
		}
		r.Boxes(recs)
		k.boxes.Store(int64(len(recs)))
	}
	go func() {
		defer close(done)
		if err := k.Engine.Changes(ctx, func(bool) { note() }); err != nil {
			t.Error(err)
		}
	}()
	var stopped atomic.Bool
	stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		<-done
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r.Close(ctx)
		writer.Close()
		_ = behind.Close()
		_ = asked.Close()
	}
	t.Cleanup(stop)
	return stop
}

// reach connects a recorder to the engine.
func (k *keeping) reach(ctx context.Context) (net.Conn, error) {
	if k.down.Load() {
		return nil, fault.New(fault.Unavailable, "the log engine is down")
	}
	conn, err := k.dial(ctx)
	return downConn{conn, k.down}, err
}

// downConn breaks when something is sent to an engine that is down.
type downConn struct {
	net.Conn
	down *atomic.Bool
}

func (c downConn) Write(p []byte) (int, error) {
	if c.down.Load() {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

// deafConn loses what the engine answers to an insert, once it has stored it.
type deafConn struct {
	net.Conn
	deaf *atomic.Bool
}

// Read breaks off in place of an answer.
func (c deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.deaf.Load() && bytes.Contains(p[:n], []byte("X-ClickHouse-Summary")) {
		_ = c.Close()
		return 0, errors.New("the connection breaks")
	}
	return n, err
}

// lateConn breaks off when an insert is sent, which comes to the engine a second later.
type lateConn struct {
	net.Conn
	late *atomic.Bool

	mu   sync.Mutex
	held []byte // nil unless an insert is late
}

func (c *lateConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		if !bytes.Contains(p, []byte("INSERT")) || !c.late.CompareAndSwap(true, false) {
			return c.Conn.Write(p)
		}
		time.AfterFunc(300*time.Millisecond, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) }) // all is written by then
		time.AfterFunc(1300*time.Millisecond, c.deliver)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}

// deliver hands the insert to the engine, and waits until that has stored it.
func (c *lateConn) deliver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.Conn.Close()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Conn.Write(c.held); err == nil {
		_, _ = c.Read(make([]byte, 1))
	}
}

func (c *lateConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		return nil // deliver does it
	}
	return c.Conn.Close()
}

// A kept row is one about the main command.
type kept struct {
	Body, Event, Severity, Stream, Exec, Name string
}

// rows returns the rows about the main command, in the order in which they were made.
func (k *keeping) rows(t *testing.T) (rows []kept) {
	t.Helper()
	r, err := k.engine.Query(t.Context(), clickhouse.Request{SQL: `SELECT Body, EventName AS Event, SeverityText AS Severity,
		LogAttributes['stream'] AS Stream, LogAttributes['exec.id'] AS Exec, ResourceAttributes['box.name'] AS Name FROM otel.otel_logs
		WHERE LogAttributes['main'] = 'true' AND ServiceName = {service:String} ORDER BY Timestamp`,
		Params: map[string]string{"service": "box-" + k.ID}})
	must(t, err)
	defer r.Free()
	must(t, json.Unmarshal(r.Rows, &rows))
	return rows
}

// await waits for rows of which so holds.
func (k *keeping) await(t *testing.T, what string, so func([]kept) bool) []kept {
	t.Helper()
	boxes.Await(t, what, func() bool { return so(k.rows(t)) })
	return k.rows(t)
}

// printed returns how often each line of a stream is there.
func printed(rows []kept, stream string) map[string]int {
	lines := map[string]int{}
	for _, row := range rows {
		if row.Stream == stream && row.Event == "" {
			lines[row.Body]++
		}
	}
	return lines
}

func events(rows []kept) (names []string) {
	for _, row := range rows {
		if row.Event != "" {
			names = append(names, row.Event+" "+row.Severity)
		}
	}
	return names
}

// once fails the test unless each of n numbered lines is there once.
func once(t *testing.T, rows []kept, n int) {
	t.Helper()
	lines := printed(rows, "stdout")
	for i := 1; i <= n; i++ {
		if lines[fmt.Sprint("line ", i)] != 1 {
			t.Fatalf("line %d is there %d times", i, lines[fmt.Sprint("line ", i)])
		}
	}
	if len(lines) != n {
		t.Errorf("%d lines, want %d", len(lines), n)
	}
}

// What a main command prints, its runs and its health are rows, each once, whether a
// recorder is there or not.
func TestMains(t *testing.T) {
	t.Parallel()
	k := newKeeping(t, `echo begun; echo wrong >&2; printf half; until rm /tmp/go; do sleep 0.05; done 2>/dev/null; echo " whole"; exit 3`, func(o *options.Box) {
		o.Restart = "on-failure:1"
		o.HealthCheck = &api.HealthCheck{Test: []string{"CMD-SHELL", "test -e /tmp/up || { echo down; exit 1; }"},
			IntervalMS: 100, TimeoutMS: 30000, StartIntervalMS: 100, Retries: 1}
	})
	stop := k.record(t)
	k.await(t, "its first rows", func(rows []kept) bool {
		return printed(rows, "stderr")["wrong"] > 0 && slices.Contains(events(rows), "box.unhealthy ERROR")
	})
	stop()
	k.Sh(t, "touch /tmp/up")
	boxes.Await(t, "its health", func() bool { return k.now(t).Health.Status == api.Healthy })
	k.Sh(t, "touch /tmp/go") // it ends, and runs again
	boxes.Await(t, "its restart", func() bool { c := k.now(t).Command; return c.Restarts == 1 && c.Status == api.CommandRunning })
	stop = k.record(t)
	k.await(t, "the restart", func(rows []kept) bool { return printed(rows, "stderr")["wrong"] == 2 })
	k.Sh(t, "touch /tmp/go")
	rows := k.await(t, "both ends", func(rows []kept) bool {
		names := events(rows)
		return len(names) > 0 && strings.Count(strings.Join(names, " "), "box.command.ended WARN") == 2
	})
	stop()
	if out := printed(rows, "stdout"); out["begun"] != 2 || out["half whole"] != 2 || len(out) != 2 {
		t.Errorf("printed %v", out)
	}
	counts := map[string]int{}
	for _, name := range events(rows) {
		counts[name]++
	}
	if counts["box.command.started INFO"] != 1 || counts["box.command.restarted INFO"] != 1 || counts["box.unhealthy ERROR"] != 1 {
		t.Errorf("events: %v", counts)
	}
	first, ended := rows[slices.IndexFunc(rows, func(r kept) bool { return r.Event == "box.command.started" })], false
	for _, row := range rows {
		ended = ended || row.Body == "main command ended with exit code 3" && row.Exec == first.Exec
	}
	if first.Name != "web" || first.Exec != k.Command.ExecID || !ended {
		t.Errorf("rows: %+v", rows)
	}
	if body := rows[slices.IndexFunc(rows, func(r kept) bool { return r.Event == "box.unhealthy" })].Body; !strings.HasPrefix(body, "box unhealthy: down") {
		t.Errorf("unhealthy says %q", body)
	}
}

func (k *keeping) now(t *testing.T) core.Record {
	t.Helper()
	rec, err := k.Engine.Get(t.Context(), k.ID)
	must(t, err)
	return rec
}

// counting prints numbered lines, in pieces.
const counting = `i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; [ $((i % 300)) = 0 ] && sleep 0.1; done; sleep 600`

// Recorders come and go while a command prints: each line is there once.
func TestMainsWithoutRecorder(t *testing.T) {
	t.Parallel()
	k := newKeeping(t, counting)
	for want := 1; want <= 3000; want += 700 {
		stop := k.record(t)
		k.await(t, "some lines", func(rows []kept) bool { return len(printed(rows, "stdout")) >= want })
		stop()
	}
	k.record(t)
	once(t, k.await(t, "all lines", func(rows []kept) bool { return len(printed(rows, "stdout")) >= 3000 }), 3000)
}

// The engine stores rows and its answer is lost: they are not stored again.
func TestMainsLostAnswers(t *testing.T) {
	t.Parallel()
	k := newKeeping(t, counting)
	k.deaf.Store(true)
	stop := k.record(t)
	k.await(t, "rows nobody knows of", func(rows []kept) bool { return len(printed(rows, "stdout")) > 0 })
	stop()
	stop = k.record(t)
	k.await(t, "more of them", func(rows []kept) bool { return len(printed(rows, "stdout")) >= 1000 })
	k.deaf.Store(false)
	once(t, k.await(t, "all lines", func(rows []kept) bool { return len(printed(rows, "stdout")) >= 3000 }), 3000)
	stop()
}

// An insert comes to the engine after its sender has given up and asked for its rows: they
// are not stored again.
func TestMainsLateInsert(t *testing.T) {
	t.Parallel()
	k := newKeeping(t, counting)
	k.late.Store(true)
	k.record(t)
	once(t, k.await(t, "all lines", func(rows []kept) bool { return len(printed(rows, "stdout")) >= 3000 }), 3000)
	if k.late.Load() {
		t.Error("no insert was late")
	}
}

// Lines that are far smaller than their rows are all stored.
func TestMainsEmptyLines(t *testing.T) {
	t.Parallel()
	const lines = 1 << 19
	k := newKeeping(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' '\n'`, lines), func(o *options.Box) { o.Name = strings.Repeat("n", 128) })
	boxes.Await(t, "its end", func() bool { return k.now(t).Command.Status == api.CommandEnded })
	k.record(t)
	grown(t, k.engine, "countIf(LogAttributes['stream'] = 'stdout')", lines)
	boxes.Await(t, "the row of its end", func() bool { return one(t, k.engine, "countIf(EventName = 'box.command.ended')") == "1" })
	if got, want := one(t, k.engine, "countIf(LogAttributes['stream'] = 'stdout')"), fmt.Sprint(lines); got != want {
		t.Errorf("%s lines are stored, want %s", got, want)
	}
}

// beside makes one more box, whose main command prints "first", and has the recorder begin.
// It returns what is kept of that box, once this line is.
func (k *keeping) beside(t *testing.T, script string) *keeping {
	t.Helper()
	other := boxes.Request(boxes.NextID(k.Home), k.Root)
	other.Options.Command = []string{"sh", "-c", script}
	_, err := k.Engine.Create(t.Context(), other)
	must(t, err)
	k.record(t)
	of := *k
	of.Box = &boxes.Box{Record: core.Record{ID: other.ID}, Engine: k.Engine, Home: k.Home}
	of.await(t, "its first line", func(rows []kept) bool { return printed(rows, "stdout")["first"] > 0 })
	return &of
}

// What was printed before a box was removed is stored all the same.
func TestMainsOfRemoved(t *testing.T) {
	t.Parallel()
	k := newKeeping(t, "echo begun; sleep 600")
	gone := k.beside(t, "trap 'echo last; exit' TERM; echo first; while :; do sleep 0.05; done")
	_, err := k.Engine.Stop(t.Context(), gone.ID, 10*time.Second)
	must(t, err)
	must(t, k.Engine.Remove(t.Context(), gone.ID, true))
	rows := gone.await(t, "its end", func(rows []kept) bool {
		return slices.ContainsFunc(rows, func(r kept) bool { return r.Event == "box.command.ended" })
	})
	if out := printed(rows, "stdout"); out["first"] != 1 {
		t.Errorf("printed %v", out)
	}
	boxes.Await(t, "its position to be forgotten", func() bool {
		left, _ := filepath.Glob(filepath.Join(k.at, gone.ID+"*"))
		return len(left) == 0
	})
}

// What was printed before a box was removed is stored when the engine, which could not be
// reached then, can be reached again.
func TestMainsOfRemovedWithoutEngine(t *testing.T) {
	t.Parallel()
	k := newKeeping(t, "echo begun; sleep 600")
	k.wait = 0
	gone := k.beside(t, "echo first; until rm /tmp/go; do sleep 0.05; done 2>/dev/null; echo last; sleep 600")
	k.down.Store(true)
	gone.Sh(t, "touch /tmp/go")
	k.refused(t)
	must(t, k.Engine.Remove(t.Context(), gone.ID, true))
	boxes.Await(t, "the recorder to be told", func() bool { return k.boxes.Load() == 1 })
	k.refused(t)
	k.down.Store(false)
	rows := gone.await(t, "its end", func(rows []kept) bool {
		return slices.ContainsFunc(rows, func(r kept) bool { return r.Event == "box.command.ended" })
	})
	if out := printed(rows, "stdout"); out["first"] != 1 || out["last"] != 1 {
		t.Errorf("printed %v", out)
	}
	boxes.Await(t, "its position to be forgotten", func() bool {
		left, _ := filepath.Glob(filepath.Join(k.at, gone.ID+"*"))
		return len(left) == 0
	})
}

// refused waits until a recorder has asked the engine in vain for the rows that it had sent,
// more than once, as a try may have begun before.
func (k *keeping) refused(t *testing.T) {
	t.Helper()
	n := k.tries.Load()
	boxes.Await(t, "tries to reach the engine", func() bool { return k.tries.Load() >= n+3 })
}
