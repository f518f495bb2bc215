package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/spool"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// serving makes a box whose main command is a script.
func serving(t *testing.T, script string, change ...func(*options.Box)) *boxes.Box {
	t.Helper()
	return boxes.New(t, append([]func(*options.Box){func(o *options.Box) { o.Command = []string{"sh", "-c", script} }}, change...)...)
}

// now returns the record of a box.
func now(t *testing.T, b *boxes.Box) core.Record {
	t.Helper()
	rec, err := b.Engine.Get(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// commandIs waits until the main command of a box is as want says.
func commandIs(t *testing.T, b *boxes.Box, what string, want func(core.Record) bool) core.Record {
	t.Helper()
	boxes.Await(t, what, func() bool { return want(now(t, b)) })
	return now(t, b)
}

// printed returns what a run of the main command has printed, which it reads from the
// files as any program on the home may, until the run has ended or it holds what is
// wanted.
func printed(t *testing.T, b *boxes.Box, exec, want string) (out string, rec api.Exec) {
	t.Helper()
	e, err := spool.Read(record.OutputDir(b.Home)).Get(b.ID, exec)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := e.Events(0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	buf := make([]byte, spool.MaxEvent)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !reader.Done() && !(want != "" && strings.Contains(out, want)) {
		if err := reader.Wait(ctx); err != nil {
			t.Fatalf("%v; so far: %q", err, out)
		}
		for event := new(spool.Event); event != nil; {
			if event, err = reader.Next(buf); err != nil {
				t.Fatal(err)
			}
			if event != nil && event.Kind == spool.Log {
				out += string(event.Data)
			}
		}
	}
	return out, e.Record()
}

// The main command starts with its box, once at each start, and is an exec like others:
// listed, found, signaled, and its output is read while it runs and when it has ended.
func TestMainCommand(t *testing.T) {
	t.Parallel()
	b := serving(t, `trap 'echo usr; exit 3' USR1; echo fails >&2; echo begins; while :; do sleep 0.05; done`)
	first := b.Command
	if first == nil || first.Status != api.CommandRunning || first.Restarts != 0 || first.ExitCode != nil || b.Health != nil {
		t.Fatalf("right after the create: %+v, %+v", first, b.Health)
	}
	if out, rec := printed(t, b, first.ExecID, "begins"); !strings.Contains(out, "begins\n") || rec.Status != api.ExecRunning {
		t.Errorf("while it runs: %q, %+v", out, rec)
	}
	execs, err := b.Engine.Execs(t.Context(), b.ID)
	if err != nil || len(execs) != 1 || !execs[0].Main || execs[0].ID != first.ExecID {
		t.Errorf("execs: %+v, %v", execs, err)
	}
	if _, err := b.Engine.Attach(t.Context(), b.ID, first.ExecID, nil); !fault.Is(err, fault.InvalidState) {
		t.Errorf("another reader of its pipes: %v", err)
	}
	if _, err := b.Engine.SignalExec(t.Context(), b.ID, first.ExecID, 10); err != nil {
		t.Error(err)
	}
	rec := commandIs(t, b, "the end", func(r core.Record) bool { return r.Command.Status == api.CommandEnded })
	if rec.Status != api.Running || *rec.Command.ExitCode != 3 {
		t.Errorf("after the end: %+v, %+v", rec.Status, rec.Command)
	}
	if out, end := printed(t, b, first.ExecID, ""); !strings.Contains(out, "usr\n") || !strings.Contains(out, "fails\n") || end.Status != api.ExecFailed || *end.ExitCode != 3 || !end.Main {
		t.Errorf("its output: %q, %+v", out, end)
	}
	b.Lives(t)
	for range 2 {
		if _, err := b.Engine.Stop(t.Context(), b.ID, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		rec, err := b.Engine.Start(t.Context(), b.ID)
		if err != nil || rec.Command.Status != api.CommandRunning || rec.Command.ExecID == first.ExecID || rec.Command.Restarts != 0 {
			t.Fatalf("a start: %+v, %v", rec.Command, err)
		}
	}
	if places := spool.Read(record.OutputDir(b.Home)).Places(b.ID); len(places) != 3 {
		t.Errorf("%d runs are kept, want 3", len(places))
	}
}

// What restart says becomes of a command that ends.
func TestRestarts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		restart, script string
		stop            bool
		restarts        int
		status          api.CommandStatus
	}{
		"no":                          {"", "exit 1", false, 0, api.CommandEnded},
		"on-failure:2":                {"on-failure:2", "exit 1", false, 2, api.CommandEnded},
		"on-failure, succeeds":        {"on-failure", "exit 0", false, 0, api.CommandEnded},
		"on-failure, at last":         {"on-failure", "echo x >> /tmp/n; [ $(wc -l < /tmp/n) -ge 3 ]", false, 2, api.CommandEnded},
		"on-failure:1, signal":        {"on-failure:1", "kill -9 $$", false, 1, api.CommandEnded},
		"always":                      {"always", "exit 0", false, 3, ""},
		"no such command":             {"on-failure:1", "", false, 1, api.CommandEnded},
		"on-failure:1, then it stops": {"on-failure:1", "exit 1", true, 1, api.CommandEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serving(t, c.script, func(o *options.Box) {
				o.Restart, o.StopWithCommand = c.restart, c.stop
				if c.script == "" {
					o.Command = []string{"/no/such/command"}
				}
			})
			rec := commandIs(t, b, "the restarts", func(r core.Record) bool {
				return r.Command.Restarts >= c.restarts && (c.status == "" || r.Command.Status == c.status) && (!c.stop || r.Status == api.Stopped)
			})
			if c.status != "" && rec.Command.Restarts != c.restarts {
				t.Errorf("%+v", rec.Command)
			}
			if c.script == "" && *rec.Command.ExitCode != 127 {
				t.Errorf("%+v", rec.Command)
			}
			if c.stop {
				if rec.Reason != "command_ended" || rec.Health != nil {
					t.Errorf("%+v", rec)
				}
			} else {
				b.Lives(t)
			}
		})
	}
}

// Who cancels a main command ends it until the next start of the box.
func TestCanceledMain(t *testing.T) {
	t.Parallel()
	b := serving(t, "sleep 600", func(o *options.Box) { o.Restart = "always" })
	if _, err := b.Engine.CancelExec(t.Context(), b.ID, b.Command.ExecID, time.Second); err != nil {
		t.Fatal(err)
	}
	rec := commandIs(t, b, "the end", func(r core.Record) bool { return r.Command.Status == api.CommandEnded })
	if rec.Command.Restarts != 0 || *rec.Command.ExitCode != 143 {
		t.Errorf("%+v", rec.Command)
	}
}

// A box with auto_remove whose command ends with it is removed, with what it printed.
func TestStopWithCommandRemoves(t *testing.T) {
	t.Parallel()
	root := rootfs.Busybox(t)
	home := t.TempDir()
	e := boxes.Open(t, home)
	req := boxes.Request(boxes.NextID(home), root)
	req.Options.Command, req.Options.StopWithCommand, req.Options.AutoRemove = []string{"sh", "-c", "echo x; sleep 0.3"}, true, true
	if _, err := e.Create(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	boxes.Await(t, "its removal", func() bool { _, err := e.Get(t.Context(), req.ID); return fault.Is(err, fault.BoxNotFound) })
	if left, _ := filepath.Glob(filepath.Join(record.OutputDir(home), "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// healthIs waits for a health.
func healthIs(t *testing.T, b *boxes.Box, want api.HealthStatus) api.HealthState {
	t.Helper()
	rec := commandIs(t, b, "a health that is "+string(want), func(r core.Record) bool { return r.Health != nil && r.Health.Status == want })
	return *rec.Health
}

// check is a health check by a script that comes often.
func check(script string) *api.HealthCheck {
	return &api.HealthCheck{Test: []string{"CMD-SHELL", script}, IntervalMS: 100, TimeoutMS: 5000, StartIntervalMS: 100, Retries: 2}
}

// Health goes from starting to healthy, to unhealthy and back, as a file says.
func TestHealth(t *testing.T) {
	t.Parallel()
	b := serving(t, "sleep 600", func(o *options.Box) {
		o.HealthCheck = check("until [ -e /tmp/looked ]; do sleep 0.01; done; echo looks; cat /tmp/well")
		o.HealthCheck.StartPeriodMS, o.HealthCheck.TimeoutMS = 600000, 600000
	})
	if h := b.Health; h == nil || h.Status != api.HealthStarting || h.FailingStreak != 0 || h.ExitCode != nil {
		t.Fatalf("at first: %+v", h)
	}
	b.Sh(t, "touch /tmp/looked") // no check has ended before
	rec := commandIs(t, b, "a check", func(r core.Record) bool { return r.Health.ExitCode != nil })
	if h := rec.Health; h.Status != api.HealthStarting || h.FailingStreak != 0 || *h.ExitCode != 1 || !strings.Contains(h.Output, "looks") {
		t.Errorf("in the start period: %+v", h)
	}
	b.Sh(t, "echo fine > /tmp/well")
	if h := healthIs(t, b, api.Healthy); h.FailingStreak != 0 || *h.ExitCode != 0 || h.Output != "looks\nfine\n" {
		t.Errorf("healthy: %+v", h)
	}
	b.Sh(t, "rm /tmp/well")
	if h := healthIs(t, b, api.Unhealthy); h.FailingStreak < 2 {
		t.Errorf("unhealthy: %+v", h)
	}
	b.Sh(t, "echo fine > /tmp/well")
	healthIs(t, b, api.Healthy)
	execs, err := b.Engine.Execs(t.Context(), b.ID)
	if err != nil || slices.ContainsFunc(execs, func(e api.Exec) bool { return strings.Contains(strings.Join(e.Cmd, " "), "looks") }) {
		t.Errorf("checks are in the list: %v, %v", execs, err)
	}
	if _, err := b.Engine.Stop(t.Context(), b.ID, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if rec := now(t, b); rec.Health != nil || rec.Command.Status != api.CommandEnded {
		t.Errorf("stopped: %+v, %+v", rec.Health, rec.Command)
	}
}

// Checks that never end, fork, print for ever or can't be started fail, and cost little.
func TestHostileChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		test    []string
		timeout int64 // of what does not end by itself; none for what does, also on a busy host
		code    int
	}{
		"never ends":      {[]string{"CMD", "sleep", "600"}, 200, 143},
		"prints for ever": {[]string{"CMD-SHELL", "yes; exit 0"}, 200, 143},
		"ignores SIGTERM": {[]string{"CMD-SHELL", "trap '' TERM; while :; do sleep 1; done"}, 3000, 137},
		"no such command": {[]string{"CMD", "/no/such"}, 0, 127},
		"leaves children": {[]string{"CMD-SHELL", "for i in 1 2 3; do sleep 600 & done; exit 1"}, 0, 1},
		"not UTF-8":       {[]string{"CMD-SHELL", `printf '\377'; exit 5`}, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := serving(t, "exec sleep 1234", func(o *options.Box) {
				o.HealthCheck = &api.HealthCheck{Test: c.test, IntervalMS: 100, TimeoutMS: c.timeout, StartIntervalMS: 100, Retries: 1}
			})
			if h := healthIs(t, b, api.Unhealthy); *h.ExitCode != c.code || len(h.Output) > 4096 {
				t.Errorf("%d, %d bytes of output", *h.ExitCode, len(h.Output))
			}
			if rec := now(t, b); rec.Command.Restarts != 0 || rec.Command.Status != api.CommandRunning {
				t.Errorf("%+v", rec.Command)
			}
			boxes.Await(t, "checks that leave nothing", func() bool {
				return strings.TrimSpace(b.Sh(t, "ps | grep -c '[s]leep 600'")) == "0"
			})
			b.Lives(t)
		})
	}
}

// A main command that forks and prints far more than is kept holds nobody up: the last
// output is kept within its bound.
func TestHostileMain(t *testing.T) {
	t.Parallel()
	b := serving(t, "sleep 600 & head -c 100000000 /dev/zero | tr '\\0' x; echo end; exit 1", func(o *options.Box) { o.Restart = "on-failure:1" })
	rec := commandIs(t, b, "the end", func(r core.Record) bool { return r.Command.Status == api.CommandEnded })
	if rec.Command.Restarts != 1 {
		t.Errorf("%+v", rec.Command)
	}
	e, err := spool.Read(record.OutputDir(b.Home)).Get(b.ID, rec.Command.ExecID)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Wait(t.Context()); err != nil || *e.Record().StdoutBytes != 100000004 {
		t.Errorf("%+v, %v", e.Record(), err)
	}
	o, err := e.Observe([2]int64{99999990, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	buf := make([]byte, 100)
	last := ""
	for ended := false; !ended; ended, _ = o.Ended() {
		_, n, err := o.Next(buf)
		if err != nil {
			t.Fatal(err)
		}
		last += string(buf[:n])
	}
	if last != "xxxxxxxxxxend\n" {
		t.Errorf("%q", last)
	}
	var kept int64
	files, _ := filepath.Glob(filepath.Join(record.OutputDir(b.Home), b.ID, "*"))
	for _, file := range files {
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err != nil {
			t.Fatal(err)
		}
		kept += st.Blocks * 512
	}
	const besides = 1<<20 + 1<<16 // what a full pipe holds is taken at once, and there are the records
	if kept > 2*(record.KeptRun+besides) {
		t.Errorf("%d bytes are kept", kept)
	}
}

// While a box is paused no check runs and nothing is started again.
func TestPausedService(t *testing.T) {
	t.Parallel()
	b := serving(t, "echo x >> /tmp/runs; exit 1", func(o *options.Box) { o.Restart = "always" })
	h := serving(t, "sleep 600", func(o *options.Box) { o.HealthCheck = check("echo x >> /tmp/checks; wc -l < /tmp/checks") })
	healthIs(t, h, api.Healthy)
	commandIs(t, b, "restarts", func(r core.Record) bool { return r.Command.Restarts > 1 })
	paused(t, b)
	paused(t, h)
	time.Sleep(time.Second) // what had ended just before is in the records by then
	before, looked := now(t, b), now(t, h)
	time.Sleep(2 * time.Second) // longer than the delay and ten intervals
	if after := now(t, b); after.Command.Restarts > before.Command.Restarts {
		t.Errorf("%d restarts, %d before the pause", after.Command.Restarts, before.Command.Restarts)
	}
	if after := now(t, h); after.Health.Output != looked.Health.Output || after.Health.Status != api.Healthy {
		t.Errorf("a check ran in the pause: %+v, %+v", after.Health, looked.Health)
	}
	resumed(t, b)
	resumed(t, h)
	commandIs(t, b, "a restart", func(r core.Record) bool { return r.Command.Restarts > before.Command.Restarts })
	commandIs(t, h, "a check", func(r core.Record) bool { return r.Health.Output != looked.Health.Output })
}

// The shim is killed while a command runs, while it waits to be started again, and in a
// check: nothing ends by that, the next shim knows all that has happened meanwhile, and no
// byte of the output is lost.
func TestServiceOutlivesTheShim(t *testing.T) {
	t.Parallel()
	b := serving(t, `i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done`)
	h := boxes.On(t, rootfs.Busybox(t), func(o *options.Box) {
		o.Command, o.HealthCheck = []string{"sh", "-c", "sleep 600"}, check("sleep 0.2; cat /tmp/well")
	})
	r := serving(t, "echo x >> /tmp/runs; exit 1", func(o *options.Box) { o.Restart = "on-failure:4" })
	for range 3 {
		time.Sleep(150 * time.Millisecond) // wherever they are
		for _, box := range []*boxes.Box{b, h, r} {
			kill(t, box.Home)
			if err := box.Engine.Flush(t.Context()); err != nil { // starts the next one
				t.Fatal(err)
			}
		}
	}
	healthIs(t, h, api.Unhealthy)
	h.Sh(t, "touch /tmp/well")
	healthIs(t, h, api.Healthy)
	rec := commandIs(t, r, "the end", func(r core.Record) bool { return r.Command.Status == api.CommandEnded })
	if runs := r.Sh(t, "wc -l < /tmp/runs"); rec.Command.Restarts != 4 || strings.TrimSpace(runs) != "5" {
		t.Errorf("%+v after %s runs", rec.Command, runs)
	}
	if places := spool.Read(record.OutputDir(r.Home)).Places(r.ID); len(places) != 5 {
		t.Errorf("%d runs are kept, want 5", len(places))
	}
	out, _ := printed(t, b, b.Command.ExecID, "\n100\n")
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	if now := now(t, b); now.Command.ExecID != b.Command.ExecID || now.Command.Restarts != 0 {
		t.Errorf("%+v", now.Command)
	}
	b.Lives(t)
}

// A box whose command has ended while no shim was there stops when the next one comes.
func TestStopWithCommandOutlivesTheShim(t *testing.T) {
	t.Parallel()
	b := serving(t, "while ! [ -e /tmp/end ]; do sleep 0.01; done; exit 7", func(o *options.Box) { o.StopWithCommand = true })
	kill(t, b.Home)
	b.Sh(t, "touch /tmp/end")
	if err := b.Engine.Flush(t.Context()); err != nil { // starts the next one
		t.Fatal(err)
	}
	rec := boxes.AwaitState(t, b.Engine, b.ID, api.Stopped)
	if rec.Reason != "command_ended" || *rec.Command.ExitCode != 7 {
		t.Errorf("%+v, %+v", rec, rec.Command)
	}
}

// A stop asks the main command by the signal of its image, and the others when it has
// ended. SIGTERM ends a command whose image names none.
func TestStopSignal(t *testing.T) {
	t.Parallel()
	for signal, want := range map[string]string{"": "TERM", "SIGQUIT": "QUIT", "3": "QUIT", "usr1": "USR1", "NONSENSE": "TERM"} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			e := boxes.Open(t, home)
			req := boxes.Request(boxes.NextID(home), rootfs.Busybox(t))
			req.Image.StopSignal = signal
			req.Options.Command = []string{"sh", "-c", `for s in TERM QUIT USR1; do trap "echo $s; exit 0" $s; done; echo ready; while :; do sleep 0.02; done`}
			rec, err := e.Create(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			b := &boxes.Box{Record: rec, Engine: e, Home: home}
			t.Cleanup(func() { _ = e.Remove(context.Background(), b.ID, true) })
			printed(t, b, rec.Command.ExecID, "ready")
			if rec, err = e.Stop(t.Context(), b.ID, 30*time.Second); err != nil {
				t.Fatal(err)
			}
			if out, _ := printed(t, b, rec.Command.ExecID, ""); !strings.Contains(out, want+"\n") { // sh may say that SIGTERM ended its sleep
				t.Errorf("%q, want %s", out, want)
			}
			if *rec.Command.ExitCode != 0 || rec.Command.Status != api.CommandEnded {
				t.Errorf("%+v", rec.Command)
			}
		})
	}
}

// A box is used while its main command runs or waits to be started again.
func TestServiceIsUse(t *testing.T) {
	t.Parallel()
	b := serving(t, "sleep 2; exit 1", func(o *options.Box) { o.Restart, o.IdleSeconds = "on-failure:1", 1 })
	began := time.Now() // a little later than the command, on a busy host
	rec := boxes.AwaitState(t, b.Engine, b.ID, api.Stopped)
	if lived := time.Since(began); lived < 4500*time.Millisecond || rec.Reason != "idle" {
		t.Errorf("stopped after %v, %q", lived, rec.Reason)
	}
}

// What a reader has not read when the box is removed ends for it.
func TestReaderOfRemoved(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	req := boxes.Request(boxes.NextID(home), rootfs.Busybox(t))
	req.Options.Command = []string{"sh", "-c", "echo x; sleep 600"}
	rec, err := e.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	x, err := spool.Read(record.OutputDir(home)).Get(rec.ID, rec.Command.ExecID)
	if err != nil {
		t.Fatal(err)
	}
	o, err := x.Observe([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if err := e.Remove(t.Context(), rec.ID, true); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	for ended := false; !ended; ended, _ = o.Ended() {
		if err := o.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.Next(buf); err != nil {
			t.Fatal(err)
		}
	}
	if end := x.Record(); end.Status != api.ExecFailed || *end.Reason != api.ReasonBoxStopped {
		t.Errorf("%+v", end)
	}
}
