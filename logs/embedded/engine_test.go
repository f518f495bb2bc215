package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
	"sandbox/logs/embedded"
)

// rows returns n rows of one batch. They are of one day, so that they are
// stored together.
func rows(batch, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, `{"Timestamp":"%s","ServiceName":"test","Body":"row","TraceId":"%d"}`+"\n", time.Now().UTC().Format("2006-01-02 15:04:05.000000000"), batch)
	}
	return b.String()
}

func insert(ctx context.Context, c *clickhouse.Client, batch, n int) error {
	return c.Insert(ctx, clickhouse.Insertion{Columns: []string{"Timestamp", "ServiceName", "Body", "TraceId"},
		Format: "JSONEachRow", Body: strings.NewReader(rows(batch, n))})
}

// batches returns how many rows each batch has.
func batches(ctx context.Context, c *clickhouse.Client) (map[int]int, error) {
	r, err := c.Query(ctx, clickhouse.Request{SQL: "SELECT TraceId AS b, toUInt32(count()) AS n FROM otel.otel_logs GROUP BY b"})
	if err != nil {
		return nil, err
	}
	var list []struct {
		B string
		N int
	}
	if err := json.Unmarshal(r.Rows, &list); err != nil {
		return nil, err
	}
	all := map[int]int{}
	for _, row := range list {
		b, err := strconv.Atoi(row.B)
		if err != nil {
			return nil, err
		}
		all[b] = row.N
	}
	return all, nil
}

// TestKilled kills the engine again and again while it stores rows and answers
// queries. No acknowledged row may be lost, no batch may be stored in part, and
// no answer may be wrong.
func TestKilled(t *testing.T) {
	const rounds, size = 8, 500
	e, pid := engine(t, t.TempDir())
	c := driver(t, e)
	var acknowledged sync.Map // of batch
	var next, answers, refusals atomic.Int64
	check := func(got map[int]int, known []int) {
		for b, n := range got {
			if n != size {
				t.Errorf("batch %d has %d rows, want %d", b, n, size)
			}
		}
		for _, b := range known {
			if got[b] == 0 {
				t.Errorf("batch %d was acknowledged and is not there", b)
			}
		}
	}
	known := func() (list []int) {
		acknowledged.Range(func(b, _ any) bool { list = append(list, b.(int)); return true })
		return list
	}
	failure := func(err error) {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want the engine unavailable", err)
		}
		refusals.Add(1)
	}
	child, stored, answered := <-pid, make(chan bool, 1), make(chan bool, 1)
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for worker := range 3 {
			all.Go(func() {
				for ctx.Err() == nil && e.Err() == nil {
					if worker == 0 {
						before := known()
						got, err := batches(t.Context(), c)
						if err != nil {
							failure(err)
							return
						}
						check(got, before)
						if answers.Add(1) == 1 {
							answered <- true
						}
						continue
					}
					b := int(next.Add(1))
					if err := insert(t.Context(), c, b, size); err != nil {
						failure(err)
						return
					}
					acknowledged.Store(b, true)
					select {
					case stored <- true:
					default:
					}
				}
			})
		}
		<-stored
		if round == 0 {
			<-answered // the checks are of something
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // kills at random moments are the point of the test
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		cancel()
		child = <-pid // the next one answers
		wait(t, e)
		got, err := batches(t.Context(), c)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		check(got, known())
	}
	t.Logf("%d batches acknowledged, %d answers, %d failures", len(known()), answers.Load(), refusals.Load())
	if len(known()) < rounds || answers.Load() == 0 {
		t.Error("nothing went on while the engine was killed")
	}
}

// TestDaemonKilled kills the process that started the engine. The engine must
// end too, and the next daemon must have its rows.
func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_DAEMON_FOLDER="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "stored\n" {
		t.Errorf("the daemon says %q, %v", line, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	e, _ := engine(t, dir) // this waits until the other engine has ended
	got, err := batches(t.Context(), driver(t, e))
	if err != nil || got[1] != 10 {
		t.Errorf("got %v, %v", got, err)
	}
}

// daemon stores rows and waits until it is killed.
func daemon(dir string) {
	o, _ := options(dir)
	ctx := context.Background()
	e, err := embedded.Start(ctx, o)
	if err == nil {
		err = e.Wait(ctx)
	}
	if err == nil {
		var c *clickhouse.Client
		if c, err = clickhouse.Dial(e.Dial); err == nil {
			err = insert(ctx, c, 1, 10)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("stored")
	select {}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	o, _ := options(t.TempDir())
	o.Library = "/nonexistent/libchdb.so"
	if _, err := embedded.Start(t.Context(), o); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "make deps-logs") {
		t.Errorf("got %v, want what to do about the missing library", err)
	}
	o.HelperDir = t.TempDir()
	if _, err := embedded.Start(t.Context(), o); !fault.Is(err, fault.Engine) || !strings.Contains(err.Error(), o.HelperDir) {
		t.Errorf("got %v, want the place where sandbox-logs was looked for", err)
	}
}

// TestNoLibrary starts with a file that is no library. The reason must be
// reported, and the start must be tried again.
func TestNoLibrary(t *testing.T) {
	t.Parallel()
	o, _ := options(t.TempDir())
	o.Library = filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.WriteFile(o.Library, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := embedded.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	saysWhy(t, e, "file too short")
	if err := os.Remove(o.Library); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, e, "no such file") // the next start has met that
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Wait(ctx); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a wait ends with %v, want the reason that was known", err)
	}
}

// saysWhy waits until an engine says that it is down, and why.
func saysWhy(t *testing.T, e *embedded.Engine, why string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := e.Err()
		if fault.Is(err, fault.Unavailable) && strings.Contains(err.Error(), why) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %v, want %q", err, why)
		}
	}
}

// TestTTL changes how long rows are kept, and looks for that in the table.
func TestTTL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, hours := range []int{24, 24, 48} {
		o, _ := options(dir)
		o.TTL = time.Duration(hours) * time.Hour
		e, err := embedded.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		wait(t, e)
		r, err := driver(t, e).Query(t.Context(), clickhouse.Request{SQL: "SELECT engine_full FROM system.tables WHERE name = 'otel_logs'"})
		if want := fmt.Sprintf("toIntervalSecond(%d)", hours*3600); err != nil || !strings.Contains(string(r.Rows), want) {
			t.Errorf("%s (%v) has no %s", r.Rows, err, want)
		}
		_ = e.Close()
	}
}
