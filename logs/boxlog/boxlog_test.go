package boxlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/logs/boxlog"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
	"sandbox/logs/ingest"
	"sandbox/spool"
	"sandbox/test/boxes"
	"sandbox/test/leak"
	"sandbox/test/programs"
)

func TestMain(m *testing.M) { leak.Main(m) }

// stage is a box whose output is written to the log table of a real engine.
type stage struct {
	engine   *clickhouse.Client
	recorder *boxlog.Recorder
	spool    *spool.Store
	runtime  *core.Runtime
	box      *core.Box
	mu       sync.Mutex
	down     bool // the engine can't be reached
}

func (s *stage) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func newStage(t *testing.T) *stage {
	t.Helper()
	e, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), HelperDir: programs.Dir()})
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	must(t, e.Wait(t.Context()))
	s := &stage{}
	dial := func(ctx context.Context) (net.Conn, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.down {
			return nil, fault.New(fault.Unavailable, "the log engine is down")
		}
		return e.Dial(ctx)
	}
	s.engine, err = clickhouse.Dial(e.Dial)
	must(t, err)
	t.Cleanup(func() { _ = s.engine.Close() })
	behind, err := clickhouse.Dial(dial)
	must(t, err)
	t.Cleanup(func() { _ = behind.Close() })
	writer := ingest.NewWriter(behind)
	t.Cleanup(writer.Close)
	s.recorder = boxlog.New(boxlog.Config{
		Writer: writer, Log: slog.New(slog.DiscardHandler), Name: func(context.Context, string) string { return "web" },
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.recorder.Close(ctx)
	})
	s.runtime = core.New(core.Config{Engine: fake.NewEngine(t)})
	o := options.Defaults()
	o.RootfsPath, o.AutoRemove, o.Name = "/", false, "web"
	s.box, _, err = s.runtime.Create(t.Context(), o)
	must(t, err)
	s.spool = spool.Open(spool.Config{Dir: filepath.Join(t.TempDir(), "spool"), Begun: s.recorder.Follow})
	t.Cleanup(s.spool.Close)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sh runs a script to its end.
func (s *stage) sh(t *testing.T, script string) *spool.Exec {
	t.Helper()
	command, err := s.box.Exec(t.Context(), options.Exec{Cmd: []string{"/bin/sh", "-c", script}})
	must(t, err)
	e, err := s.spool.Start(command, false)
	must(t, err)
	must(t, e.Wait(t.Context()))
	return e
}

// rows waits for a number of rows, and returns each as one text.
func (s *stage) rows(t *testing.T, want int) []string {
	t.Helper()
	const sql = "SELECT ServiceName, ScopeName, ResourceAttributes['box.id'] AS id, ResourceAttributes['box.name'] AS name, LogAttributes['exec.id'] AS exec, LogAttributes['stream'] AS stream, EventName, SeverityText, substring(Body, 1, 20) AS b, length(Body) AS n FROM otel.otel_logs ORDER BY Timestamp, stream"
	var rows []map[string]string
	boxes.Await(t, fmt.Sprintf("%d rows", want), func() bool {
		r, err := s.engine.Query(t.Context(), clickhouse.Request{SQL: sql})
		must(t, err)
		must(t, json.Unmarshal(r.Rows, &rows))
		return r.Count >= want
	})
	var texts []string
	for _, row := range rows {
		if row["ServiceName"] != "box-"+s.box.ID() || row["ScopeName"] != "sandbox" || row["id"] != s.box.ID() || row["name"] != "web" {
			t.Errorf("got %v", row)
		}
		texts = append(texts, strings.Join([]string{row["exec"], row["stream"], row["EventName"], row["SeverityText"], row["b"]}, "|"))
	}
	return texts
}

func TestOutput(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	e := s.sh(t, `echo one; printf 'two\r\n\n'; printf rest`)
	id := e.Record().ID
	want := []string{id + "|stdout|||one", id + "|stdout|||two", id + "|stdout|||", id + "|stdout|||rest"}
	if got := s.rows(t, 4); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
	other := s.sh(t, `echo oops >&2`).Record().ID
	if got := s.rows(t, 5); got[4] != other+"|stderr|||oops" {
		t.Errorf("got %q", got)
	}
}

// TestLive checks that output that is not in the spool becomes rows, and that
// rows of a terminal lack what the terminal does not show.
func TestLive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	add, end := s.recorder.Live(api.Exec{ID: "exec_run", BoxID: s.box.ID()})
	for _, piece := range []string{"a\x1b[1mb", "c\nde", "f\n", "rest"} {
		add(false, []byte(piece))
	}
	add(true, []byte("oops"))
	end()
	want := []string{"exec_run|stderr|||oops", "exec_run|stdout|||a\x1b[1mbc", "exec_run|stdout|||def", "exec_run|stdout|||rest"}
	if got := slices.Sorted(slices.Values(s.rows(t, 4))); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
	add, end = s.recorder.Live(api.Exec{ID: "exec_tty", BoxID: s.box.ID(), TTY: true})
	add(false, []byte("\x1b]0;title\x07\x1b[?2004h# ls\r\n"))
	if got := s.rows(t, 5); got[4] != "exec_tty|stdout|||# ls" { // before its end
		t.Errorf("got %q", got)
	}
	end()
	r, err := s.engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT groupArray(LogAttributes['exec.id']) AS e FROM otel.otel_logs WHERE LogAttributes['tty'] = 'true'"})
	must(t, err)
	if !strings.Contains(string(r.Rows), `["exec_tty"]`) {
		t.Errorf("terminals are %s", r.Rows)
	}
}

// TestLiveDeadEngine checks that no command waits for an engine that is down,
// and that no more output is kept than becomes rows.
func TestLiveDeadEngine(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setDown(true)
	add, end := s.recorder.Live(api.Exec{ID: "exec_run", BoxID: s.box.ID()})
	line := []byte(strings.Repeat(strings.Repeat("y", 31)+"\n", 1<<6))
	for range 2 << 10 { // 4 MiB
		add(false, line)
	}
	end()
	s.setDown(false)
	boxes.Await(t, "all rows", func() bool {
		r, err := s.engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT toString(count()) AS n FROM otel.otel_logs"})
		must(t, err)
		return strings.Split(string(r.Rows), `"`)[3] == fmt.Sprint(1<<15)
	})
}

// TestFirstMebibyte checks that only the first mebibyte of an exec's output
// becomes rows.
func TestFirstMebibyte(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.sh(t, `head -c 3000000 /dev/zero | tr '\0' x; echo behind`)
	s.sh(t, `echo another`)
	r, err := s.engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT 1"})
	must(t, err)
	r.Free()
	boxes.Await(t, "rows of both commands", func() bool {
		got := strings.Join(s.rows(t, 2), "\n")
		if strings.Contains(got, "behind") {
			t.Error("more than the first MiB is in the table")
		}
		return strings.Contains(got, "another")
	})
	const first = "sumIf(length(Body), Body NOT IN ('another', 'last'))"
	grown(t, s.engine, first, 1<<20) // its last rows may come behind the other command's
	s.sh(t, `echo last`)
	grown(t, s.engine, "countIf(Body = 'last')", 1)
	if got := one(t, s.engine, first); got != fmt.Sprint(1<<20) {
		t.Errorf("got %s bytes", got)
	}
}

// TestDeadEngine has commands write while the engine is down. They must end all the
// same, and the rows must be stored later.
func TestDeadEngine(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setDown(true)
	for range 10 {
		s.sh(t, `echo first; head -c 2000000 /dev/zero | tr '\0' x`)
	}
	s.setDown(false)
	boxes.Await(t, "the first lines", func() bool { return strings.Count(strings.Join(s.rows(t, 1), "\n"), "first") == 10 })
}

// TestFlood has many commands print much while the engine is down. All of it is more
// than one insert takes, and must be stored.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.setDown(true)
	const execs, size = 100, 1 << 20
	for range execs {
		s.sh(t, fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x`, size))
	}
	s.setDown(false)
	grown(t, s.engine, "sum(length(Body))", execs*size)
}

// grown waits until a number over all rows of the log table is want. It has no other bound
// than that the number grows: how fast much is stored depends on what else the host does.
func grown(t *testing.T, engine *clickhouse.Client, expression string, want int) {
	t.Helper()
	most := -1
	for deadline := time.Now(); most != want; time.Sleep(500 * time.Millisecond) { // each look reads all rows
		got, err := strconv.Atoi(one(t, engine, expression))
		must(t, err)
		if got > most {
			most, deadline = got, time.Now().Add(2*time.Minute)
		}
		if got > want || time.Now().After(deadline) {
			t.Fatalf("%s is %d, want %d", expression, got, want)
		}
	}
}

// one returns the value of an expression over all rows of the log table.
func one(t *testing.T, engine *clickhouse.Client, expression string) string {
	t.Helper()
	r, err := engine.Query(t.Context(), clickhouse.Request{SQL: "SELECT toString(" + expression + ") AS value FROM otel.otel_logs"})
	must(t, err)
	defer r.Free()
	var rows []struct{ Value string }
	must(t, json.Unmarshal(r.Rows, &rows))
	return rows[0].Value
}

func TestBoxes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	note := func() {
		t.Helper()
		recs, err := s.runtime.List(t.Context())
		must(t, err)
		s.recorder.Boxes(recs)
	}
	note() // the state before this is no event
	_, err := s.box.Stop(t.Context(), 0)
	must(t, err)
	note()
	note()
	must(t, s.runtime.Remove(t.Context(), s.box.ID(), true))
	note()
	want := []string{"||box.stopped|INFO|box stopped", "||box.removed|INFO|box removed"}
	if got := s.rows(t, 2); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

// While the engine is dead, only so many execs that have ended wait for it and hold
// their output's files open.
func TestManyWait(t *testing.T) {
	s := newStage(t)
	s.setDown(true)
	const execs, waiting = 500, 128
	for range execs {
		s.sh(t, "echo x")
	}
	boxes.Await(t, "outputs to be closed", func() bool { return openIndexes(t) <= waiting })
	s.setDown(false)
	if found := len(s.rows(t, waiting)); found >= execs {
		t.Errorf("%d rows, though only some can wait", found)
	}
}

// openIndexes returns how many indexes of outputs this process has open.
func openIndexes(t *testing.T) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, link := range links {
		if target, _ := os.Readlink(link); strings.HasSuffix(target, ".index") { // a link of the Glob itself is gone
			n++
		}
	}
	return n
}
