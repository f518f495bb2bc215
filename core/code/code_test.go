package code_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/enginetest/fake"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// These tests run the real languages of this host on the engine that stands in for boxes.

// newBox returns a box, whose contexts end with the test.
func newBox(t *testing.T) *core.Box {
	t.Helper()
	return newBoxOn(t, fake.NewEngine(t))
}

func newBoxOn(t *testing.T, engine core.Engine) *core.Box {
	t.Helper()
	r := core.New(core.Config{Engine: engine, Images: fake.Images{"debian": {Ref: "debian", ID: "sha256:1", Layers: []string{"/"}}}})
	o := options.Defaults()
	o.Image = "debian"
	box, _, err := r.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Remove(context.Background(), true); err != nil && !fault.Is(err, fault.BoxNotFound) {
			t.Error(err)
		}
	})
	return box
}

// outcome is all that a run told.
type outcome struct {
	start, end     api.CodeEvent
	stdout, stderr string
	results        []api.CodeResult
	err            *api.CodeError
}

// run runs code to its end.
func run(t *testing.T, c *code.Contexts, box *core.Box, o options.Code) outcome {
	t.Helper()
	r, err := c.Run(t.Context(), box, o)
	if err != nil {
		t.Fatal(err)
	}
	return finish(t, r)
}

// finish reads a run to its end, and wants its events to have their order.
func finish(t *testing.T, r *code.Run) (all outcome) {
	t.Helper()
	defer r.Close()
	for n := 0; ; n++ {
		e, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			if all.end.Type == "" {
				t.Fatal("the run has no end")
			}
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if (e.Type == api.CodeStart) != (n == 0) || all.end.Type != "" {
			t.Fatalf("event %d is %+v", n, e)
		}
		all.note(e)
	}
}

func (all *outcome) note(e api.CodeEvent) {
	switch e.Type {
	case api.CodeStart:
		all.start = e
	case api.CodeStdout:
		all.stdout += e.Text
	case api.CodeStderr:
		all.stderr += e.Text
	case api.CodeShown:
		all.results = append(all.results, *e.Result)
	case api.CodeRaised:
		all.err = e.Error
	case api.CodeEnd:
		all.end = e
	}
}

// texts returns the texts of the results; the main one begins with "=".
func (all *outcome) texts() (texts []string) {
	for _, r := range all.results {
		text := "-"
		if r.Text != nil {
			text = *r.Text
		}
		if r.IsMain {
			text = "=" + text
		}
		texts = append(texts, text)
	}
	return texts
}

// step is code for a context, and what it must tell.
type step struct {
	code           string
	stdout, stderr string
	results        string // texts, joined by ";"
	err            string // "name: value"
	trace          string // what the traceback must have, from its first line on
}

// steps runs one step after another in a context.
func steps(t *testing.T, language api.Language, all []step) {
	t.Helper()
	box, c := newBox(t), code.New()
	for i, s := range all {
		got := run(t, c, box, options.Code{Code: s.code, Language: language})
		err, trace := "", ""
		if got.err != nil {
			err, trace = got.err.Name+": "+got.err.Value, got.err.Traceback
		}
		if got.stdout != s.stdout || got.stderr != s.stderr || strings.Join(got.texts(), ";") != s.results || err != s.err {
			t.Errorf("%s\nprinted %q and %q, showed %q, failed with %q\n%+v", s.code, got.stdout, got.stderr, got.texts(), err, s)
		}
		if !strings.HasPrefix(trace, s.trace) || strings.Contains(trace, "<kernel>") {
			t.Errorf("%s: the traceback is\n%s", s.code, trace)
		}
		want := api.CodeSucceeded
		if s.err != "" {
			want = api.CodeFailed
		}
		if got.end.Status != want || got.start.ExecutionCount != i+1 || got.start.Fresh != (i == 0) || got.end.DurationMS == nil {
			t.Errorf("%s: %+v, %+v", s.code, got.start, got.end)
		}
	}
}

// outcomes of runs that end in some way that is not their own.
func wantEnd(t *testing.T, got outcome, status api.CodeStatus, restarted bool, err string) {
	t.Helper()
	text := ""
	if got.err != nil {
		text = got.err.Name + ": " + got.err.Value
	}
	if got.end.Status != status || got.end.Restarted != restarted || !strings.Contains(text, err) {
		t.Errorf("the run ended with %+v and the error %q; want %s, %v, %q", got.end, text, status, restarted, err)
	}
}

// A run that is interrupted keeps what was defined before.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for language, tt := range interrupted {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			box, c := newBox(t), code.New()
			run(t, c, box, options.Code{Code: tt.before, Language: language})
			for _, endless := range tt.endless {
				got := interrupt(t, c, box, options.Code{Code: endless, Language: language})
				wantEnd(t, got, api.CodeInterrupted, false, tt.err)
				got = run(t, c, box, options.Code{Code: tt.after, Language: language})
				if got.stdout != "kept\n" || got.end.Status != api.CodeSucceeded {
					t.Errorf("after %s: %+v", endless, got)
				}
			}
		})
	}
}

// interrupt runs code that prints "on" and does not end, and interrupts it.
func interrupt(t *testing.T, c *code.Contexts, box *core.Box, endless options.Code) (got outcome) {
	t.Helper()
	r, err := c.Run(t.Context(), box, endless)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for got.stdout != "on\n" {
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got.note(e)
	}
	if _, err := c.Interrupt(t.Context(), box, string(endless.Language)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var e api.CodeEvent
		e, err = r.Next(t.Context())
		got.note(e)
	}
	return got
}

// slow is an engine that has sent an interrupt some time before it says so.
type slow struct {
	*fake.Engine
	until chan struct{}
}

func (e slow) InterruptExec(ctx context.Context, boxID, execID string) (api.Exec, error) {
	rec, err := e.Engine.InterruptExec(ctx, boxID, execID)
	<-e.until
	return rec, err
}

// An interrupt is sent once more to the run that it was meant for, and not to the one that
// has begun behind it.
func TestInterruptOne(t *testing.T) {
	t.Parallel()
	engine := slow{fake.NewEngine(t), make(chan struct{})}
	box, c := newBoxOn(t, engine), code.New()
	first, err := c.Run(t.Context(), box, options.Code{Code: "while True: pass"})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { wantEnd(t, finish(t, first), api.CodeInterrupted, false, "KeyboardInterrupt") })
	all.Go(func() {
		r, err := c.Run(t.Context(), box, options.Code{Code: "import time; time.sleep(2)"}) // the signal would come after 1 s
		close(engine.until)
		if err != nil {
			t.Error(err)
			return
		}
		wantEnd(t, finish(t, r), api.CodeSucceeded, false, "")
	})
	if _, err := c.Interrupt(t.Context(), box, string(api.Python)); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// An interrupt ends a program that the code waits for, maybe before the kernel hears of it.
func TestInterruptedProgram(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	got := run(t, c, box, options.Code{Code: "require('child_process').execSync('kill -INT $$', {stdio: 'inherit'})", Language: api.JavaScript})
	wantEnd(t, got, api.CodeInterrupted, false, "")
	got = run(t, c, box, options.Code{Code: "throw {signal: 'SIGTERM'}", Language: api.JavaScript})
	wantEnd(t, got, api.CodeFailed, false, "SIGTERM")
}

// A SIGINT that comes as a run ends does not interrupt the next one, or have all that follow
// fail. Node.js may break at such a moment: then a run tells that the context is lost. It
// aborts if it hears of the SIGINT while its inspector takes what the code threw
// (InjectedScript::ProtocolPromiseHandler::add of V8), since the program that the code waited
// for had ended first: at about one of a thousand such interrupts.
func TestInterruptAtTheEnd(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	program := options.Code{Code: "require('child_process').execSync('echo on; exec sleep 1000', {stdio: 'inherit'})", Language: api.JavaScript}
	itself := options.Code{Code: "process.kill(process.pid, 'SIGINT'); throw {signal: 'SIGINT'}", Language: api.JavaScript}
	want := func(got outcome, status api.CodeStatus) {
		t.Helper()
		if got.end.Status != status && got.end.Status != api.CodeLost {
			t.Fatalf("a run ended with %+v, %+v; want %s", got.end, got.err, status)
		}
	}
	for range 5 {
		want(interrupt(t, c, box, program), api.CodeInterrupted)
		want(run(t, c, box, options.Code{Code: "1", Language: api.JavaScript}), api.CodeSucceeded)
	}
	for range 5 { // most of them come at such a moment
		want(run(t, c, box, itself), api.CodeInterrupted)
		want(run(t, c, box, options.Code{Code: "1", Language: api.JavaScript}), api.CodeSucceeded)
	}
}

// Code that does not end in its time is interrupted, and killed if that does not help.
func TestTimeout(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	run(t, c, box, options.Code{Code: "x = 1"})
	got := run(t, c, box, options.Code{Code: "while True: pass", Timeout: 100 * time.Millisecond})
	wantEnd(t, got, api.CodeTimedOut, false, "KeyboardInterrupt")
	got = run(t, c, box, options.Code{Code: "x"})
	if strings.Join(got.texts(), "") != "=1" || got.start.Fresh {
		t.Errorf("after a timeout: %+v", got)
	}
	got = run(t, c, box, options.Code{Timeout: 2 * time.Second, Code: `
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
if os.fork() == 0:
    while True: pass
while True: pass`})
	wantEnd(t, got, api.CodeTimedOut, true, "ContextLost: the code did not end within 2s of being interrupted")
	got = run(t, c, box, options.Code{Code: "x"})
	if got.start.ExecutionCount != 1 {
		t.Errorf("after a kill: %+v", got.start)
	}
	wantEnd(t, got, api.CodeFailed, false, "NameError")
}

// What takes the process of a context away costs its state and nothing else.
func TestLost(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	for source, err := range map[string]string{
		"import os; os.kill(os.getpid(), 9)": "ended by signal 9 (SIGKILL)",
		"import os; os._exit(7)":             "ended with exit code 7",
		"import os; os.closerange(0, 1000)":  "ended with exit code",
		"import os, sys\nfor i in range(100):\n  os.write(i, b'\\x1e' + sys.modules['__main__'].__dict__.get('nonce', b'none')) if i in (1, 2) else None\nos._exit(0)": "ended with exit code 0",
	} {
		run(t, c, box, options.Code{Code: "import os; kept = 1; print('before')"})
		wantEnd(t, run(t, c, box, options.Code{Code: source}), api.CodeLost, true, err)
		got := run(t, c, box, options.Code{Code: "print('kept' in globals())"})
		if got.stdout != "False\n" || got.start.ExecutionCount != 1 {
			t.Errorf("after %q: %+v", source, got)
		}
	}
}

// Whoever leaves a run interrupts it, and the next one finds the context as it was.
func TestLeave(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	run(t, c, box, options.Code{Code: "x = 1"})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Run(ctx, box, options.Code{Code: "while True: print('x' * 10000)"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = r.Close()
	if got := run(t, c, box, options.Code{Code: "x"}); strings.Join(got.texts(), "") != "=1" || got.stdout != "" {
		t.Errorf("after a run that was left: %v, %d bytes", got.texts(), len(got.stdout))
	}
	if _, err := c.Run(ctx, box, options.Code{Code: "x"}); !fault.Is(err, fault.Canceled) {
		t.Errorf("a run that nobody waits for: %v", err)
	}
}

// A run that is left in any moment, before its code begins too, does no harm to the next one.
// Node.js may lose what was defined: it dies of a signal that comes in a bad moment.
func TestLeaveAtAnyTime(t *testing.T) {
	t.Parallel()
	for _, o := range []options.Code{
		{Language: api.Python, Code: "while True: pass"},
		{Language: api.Bash, Code: "while :; do :; done"},
		{Language: api.JavaScript, Code: "while (true);"},
	} {
		t.Run(string(o.Language), func(t *testing.T) {
			t.Parallel()
			box, c := newBox(t), code.New()
			run(t, c, box, options.Code{Language: o.Language, Code: "x=1"})
			for i := range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
				if r, err := c.Run(ctx, box, o); err == nil {
					_ = r.Close()
				}
				cancel()
				if got := run(t, c, box, options.Code{Language: o.Language}); got.end.Status != api.CodeSucceeded || got.end.Restarted {
					t.Errorf("after a run that was left at %d: %+v", i, got)
				}
			}
			if got := run(t, c, box, options.Code{Language: o.Language, Code: "x"}); o.Language == api.Python && got.end.Status != api.CodeSucceeded {
				t.Errorf("what was defined is lost: %+v", got.err)
			}
		})
	}
}

// Runs in one context wait for each other, and those in two don't.
func TestTurns(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	gate := filepath.Join(t.TempDir(), "gate")
	first, err := c.Run(t.Context(), box, options.Code{Code: fmt.Sprintf("import os, time\nwhile not os.path.exists(%q): time.sleep(0.01)\nx = 5", gate)})
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.Create(t.Context(), box, options.CodeContext{})
	if err != nil {
		t.Fatal(err)
	}
	beside := run(t, c, box, options.Code{Code: "'x' in globals()", Context: other.ID})
	if strings.Join(beside.texts(), "") != "=False" || beside.start.Fresh || beside.start.ContextID != other.ID || beside.start.ExecutionCount != 1 {
		t.Errorf("beside: %+v", beside)
	}
	if _, err := code.New().Run(t.Context(), box, options.Code{Code: "x"}); !fault.Is(err, fault.InvalidState) {
		t.Errorf("by another program: %v", err)
	}
	second := make(chan outcome, 1)
	go func() {
		defer close(second) // also where the run has failed
		second <- run(t, c, box, options.Code{Code: "x"})
	}()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	finish(t, first)
	if got := <-second; strings.Join(got.texts(), "") != "=5" {
		t.Errorf("the run behind it: %+v", got)
	}
}

// Contexts are found by every program of the home, restarted, and removed.
func TestContexts(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	made, err := c.Create(t.Context(), box, options.CodeContext{WorkingDir: "/tmp", Env: map[string]string{"A": "a b=c"}})
	if err != nil {
		t.Fatal(err)
	}
	show := options.Code{Code: "import os; seen = 'seen' in globals(); print(os.getcwd(), os.environ['A'], seen)", Context: made.ID}
	if got := run(t, c, box, show); got.stdout != "/tmp a b=c False\n" {
		t.Errorf("%+v", got)
	}
	later := code.New() // of another program, or after a restart of this one
	if got := run(t, later, box, show); got.stdout != "/tmp a b=c True\n" || got.start.ExecutionCount != 2 {
		t.Errorf("%+v", got)
	}
	again, err := later.Restart(t.Context(), box, made.ID)
	if err != nil || again.ExecID == made.ExecID || again.ID != made.ID {
		t.Errorf("restarted: %+v, %v", again, err)
	}
	if got := run(t, c, box, show); got.stdout != "/tmp a b=c False\n" || got.start.ExecutionCount != 1 {
		t.Errorf("after a restart: %+v", got)
	}
	all, err := c.List(t.Context(), box)
	if err != nil || len(all) != 1 || all[0] != again {
		t.Errorf("the list has %+v, %v; want %+v", all, err, again)
	}
	if err := c.Remove(t.Context(), box, made.ID); err != nil {
		t.Error(err)
	}
	_, err = c.Get(t.Context(), box, made.ID)
	_, running := c.Run(t.Context(), box, show)
	_, interrupting := c.Interrupt(t.Context(), box, made.ID)
	_, restarting := c.Restart(t.Context(), box, made.ID)
	for _, err := range []error{err, running, interrupting, restarting, c.Remove(t.Context(), box, made.ID)} {
		if !fault.Is(err, fault.ContextNotFound) {
			t.Errorf("a removed context: %v", err)
		}
	}
}

// What waits for a context that is restarted runs in the new one.
func TestRestartComesFirst(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	for _, id := range ownAndMade(t, c, box) {
		first, err := c.Run(t.Context(), box, options.Code{Code: "x = 1\nwhile True: pass", Context: id})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() { wantEnd(t, finish(t, first), api.CodeLost, false, "the context was removed or restarted") })
		for range 3 {
			all.Go(func() {
				if got := run(t, c, box, options.Code{Code: "'x' in globals()", Context: id}); strings.Join(got.texts(), "") != "=False" {
					t.Errorf("what waited in %s: %+v", id, got)
				}
			})
		}
		c.AwaitWaiting(t, box, id, 3)
		if _, err := c.Restart(t.Context(), box, id); err != nil {
			t.Errorf("restart %s: %v", id, err)
		}
		all.Wait()
		removeOnly(t, c, box, id)
	}
}

// A context is there once, however many restart it at once.
func TestRestarts(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	for _, id := range ownAndMade(t, c, box) {
		run(t, c, box, options.Code{Code: "1", Context: id})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := c.Restart(t.Context(), box, id); err != nil {
					t.Errorf("restart %s: %v", id, err)
				}
			})
		}
		all.Wait()
		removeOnly(t, c, box, id)
	}
}

// A context is there once, too, where a run that had just begun to wait for its process has
// started it anew when it is restarted.
func TestRestartBeside(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	asked := filepath.Join(t.TempDir(), "asked")
	run(t, c, box, options.Code{Code: fmt.Sprintf(`
import os, select, time
write, requests = os.write, display.__self__.host.requests
def wrapped(fd, piece):
    n = write(fd, piece)
    if b'"kind": "end"' in piece:  # the process hears of the next request, and does not begin it
        select.select([requests], [], [])
        open(%q, "w").close()
        while True: time.sleep(1)
    return n
os.write = wrapped`, asked)})
	var second sync.WaitGroup
	second.Go(func() { wantEnd(t, run(t, c, box, options.Code{Code: "1"}), api.CodeSucceeded, false, "") })
	boxes.Await(t, "the request", func() bool {
		_, err := os.Stat(asked)
		return err == nil
	})
	again, err := c.Restart(t.Context(), box, string(api.Python))
	second.Wait()
	if now, finding := c.Get(t.Context(), box, string(api.Python)); err != nil || finding != nil || now.ExecID != again.ExecID {
		t.Errorf("restarted as %+v, %v; it is %+v, %v", again, err, now, finding)
	}
	removeOnly(t, c, box, string(api.Python))
}

// A context that a language has of its own is there once, however many programs use it for
// the first time at once.
func TestFirstUses(t *testing.T) {
	t.Parallel()
	for range 5 {
		box := newBox(t)
		var all sync.WaitGroup
		var done atomic.Int32
		for range 5 {
			all.Go(func() {
				r, err := code.New().Run(t.Context(), box, options.Code{Code: "1"})
				switch {
				case err == nil:
					finish(t, r)
					done.Add(1)
				case !fault.Is(err, fault.InvalidState): // another one runs code in it
					t.Error(err)
				}
			})
		}
		all.Wait()
		if done.Load() == 0 {
			t.Error("nobody ran code")
		}
		removeOnly(t, code.New(), box, string(api.Python))
	}
}

// A context of a paused box is not restarted, and is as it was when the box is resumed.
func TestRestartPaused(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	run(t, c, box, options.Code{Code: "x = 1"})
	_, err := box.Pause(t.Context(), false)
	if err == nil {
		_, err = c.Restart(t.Context(), box, string(api.Python))
	}
	if !fault.Is(err, fault.InvalidState) {
		t.Errorf("got %v, want invalid_state", err)
	}
	if _, err := box.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := run(t, c, box, options.Code{Code: "x"}); strings.Join(got.texts(), "") != "=1" {
		t.Errorf("after a resume: %+v", got)
	}
}

// full is an engine whose host has no descriptor left once a command was started.
type full struct {
	*fake.Engine
	t *testing.T
}

func (e full) Exec(ctx context.Context, id string, o options.Exec) (*core.Process, error) {
	p, err := e.Engine.Exec(ctx, id, o)
	next, failed := unix.Dup(0)
	if err != nil || failed != nil {
		return p, errors.Join(err, failed)
	}
	_ = unix.Close(next)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	return p, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next), Max: limit.Max})
}

// A context whose output can't be read is not there.
//
//nolint:paralleltest // the limit is that of the process
func TestCreateUnread(t *testing.T) {
	box, c := newBoxOn(t, full{fake.NewEngine(t), t}), code.New()
	_, err := c.Create(t.Context(), box, options.CodeContext{})
	if !fault.Is(err, fault.ResourceExhausted) {
		t.Errorf("without a descriptor: %v", err)
	}
	boxes.Await(t, "its process to end", func() bool {
		all, err := c.List(t.Context(), box)
		return err == nil && len(all) == 0
	})
}

// ownAndMade returns the ids of a context that is made for its language, and of one that
// was asked for.
func ownAndMade(t *testing.T, c *code.Contexts, box *core.Box) []string {
	t.Helper()
	made, err := c.Create(t.Context(), box, options.CodeContext{})
	if err != nil {
		t.Fatal(err)
	}
	return []string{string(api.Python), made.ID}
}

// removeOnly removes a context, and wants that there was no other one with its id.
func removeOnly(t *testing.T, c *code.Contexts, box *core.Box, id string) {
	t.Helper()
	if err := c.Remove(t.Context(), box, id); err != nil {
		t.Error(err)
	}
	if left, err := c.Get(t.Context(), box, id); !fault.Is(err, fault.ContextNotFound) {
		t.Errorf("a second context %s: %+v, %v", id, left, err)
	}
}

// A restart that has begun is done, also when nobody waits for it any more.
func TestRestartGoesOn(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	made, err := c.Create(t.Context(), box, options.CodeContext{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var gone sync.WaitGroup
	gone.Go(func() {
		defer cancel()
		boxes.Await(t, "its process to end", func() bool {
			now, err := c.Get(t.Context(), box, made.ID)
			return fault.Is(err, fault.ContextNotFound) || now.ExecID != made.ExecID
		})
	})
	_, failed := c.Restart(ctx, box, made.ID)
	gone.Wait()
	if now, err := c.Get(t.Context(), box, made.ID); err != nil || now.ExecID == made.ExecID {
		t.Errorf("the context is %+v, %v; the restart ended with %v", now, err, failed)
	}
}

// A run that its context is taken from says so, and nothing is started anew.
func TestRemoveRunning(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	r, err := c.Run(t.Context(), box, options.Code{Code: "while True: pass"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(t.Context(), box, "python"); err != nil {
		t.Error(err)
	}
	wantEnd(t, finish(t, r), api.CodeLost, false, "the context was removed or restarted")
	if all, err := c.List(t.Context(), box); err != nil || len(all) != 0 {
		t.Errorf("left: %+v, %v", all, err)
	}
	if got := run(t, c, box, options.Code{Code: "1"}); !got.start.Fresh {
		t.Errorf("the next run: %+v", got.start)
	}
}

// The end of a box ends its runs.
func TestBoxStops(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	r, err := c.Run(t.Context(), box, options.Code{Code: "while True: pass"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
	wantEnd(t, finish(t, r), api.CodeLost, false, "was ended with its box")
}

func TestRefused(t *testing.T) {
	t.Parallel()
	box, c := newBox(t), code.New()
	for want, o := range map[fault.Kind][]options.Code{
		fault.InvalidArgument: {
			{Code: "a\x00b"}, {Language: "cobol"}, {Context: "../x"}, {Context: "python", Language: api.Bash}, {Env: map[string]string{"A=B": ""}},
		},
		fault.ContextNotFound: {{Context: "ctx_aaaaaaaaaaaaaaaaaaaa"}},
	} {
		for _, o := range o {
			if _, err := c.Run(t.Context(), box, o); !fault.Is(err, want) {
				t.Errorf("%+v: %v, want %v", o, err, want)
			}
		}
	}
	_, err := c.Create(t.Context(), box, options.CodeContext{Env: map[string]string{"PATH": "/nowhere"}})
	if execs, err := box.Execs(t.Context()); err != nil || len(execs) != 1 {
		t.Errorf("a language that there is not was started as %d execs, %v", len(execs), err)
	}
	if !fault.Is(err, fault.Execution) || !strings.Contains(err.Error(), "python3") {
		t.Errorf("without the language: %v", err)
	}
}
