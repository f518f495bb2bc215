package enginetest

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/members"
)

// records tests that the record of an exec says what the command really got,
// and how it ended.
func records(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t, func(o *options.Box) { o.WorkingDir, o.Env = "/tmp", map[string]string{"A": "box", "B": "box"} })
	start := time.Now()
	e := s.start(t, box, options.Exec{
		Cmd: sh("read line; exit 3"), Stdin: true, Env: map[string]string{"B": "exec"}, User: "nobody", Timeout: timeout,
	})
	for name, rec := range map[string]api.Exec{"its start": e.Record(), "a look": must(box.ExecRecord(ctx, e.ID()))(t)} {
		members.Equal(t, name, members.Of{
			"id": {rec.ID, e.ID()}, "box": {rec.BoxID, box.ID()}, "status": {rec.Status, api.ExecRunning},
			"command": {rec.Cmd, sh("read line; exit 3")}, "working directory": {rec.WorkingDir, "/tmp"},
			"user": {rec.User, "nobody"}, "terminal": {rec.TTY, false}, "timeout": {rec.TimeoutMS, timeout.Milliseconds()},
			"a PID above 1": {rec.PID != nil && *rec.PID > 1, true}, "created now": {rec.CreatedAt.Sub(start).Abs() <= timeout, true},
			"exit code": {rec.ExitCode, nil}, "reason": {rec.Reason, nil}, "signal": {rec.Signal, nil},
			"finished": {rec.FinishedAt, nil}, "duration": {rec.DurationMS, nil},
			"A": {rec.Env["A"], "box"}, "B": {rec.Env["B"], "exec"}, "USER": {rec.Env["USER"], "nobody"}, "a PATH": {rec.Env["PATH"] != "", true},
		})
	}
	write(t, e, "\n")
	status := s.finish(t, e).ExitStatus
	rec := must(box.ExecRecord(ctx, e.ID()))(t)
	members.Equal(t, "ended", members.Of{
		"status": {rec.Status, api.ExecFailed}, "exit code": {rec.ExitCode, 3}, "reason": {rec.Reason, api.ReasonExited}, "signal": {rec.Signal, nil},
		"the stream's end":     {rec.FinishedAt != nil && rec.FinishedAt.Equal(status.FinishedAt), true},
		"an end after a start": {rec.FinishedAt != nil && !rec.FinishedAt.Before(rec.CreatedAt), true},
		"a duration":           {rec.DurationMS != nil && *rec.DurationMS >= 0, true},
	})

	failed := s.start(t, box, options.Exec{Cmd: []string{"nosuchcommand"}, TTY: true})
	s.finish(t, failed)
	list := must(box.Execs(ctx))(t)
	if len(list) != 2 || list[0].ID != failed.ID() || list[1].ID != e.ID() {
		t.Fatalf("listed %+v, want the newer first", list)
	}
	members.Equal(t, "the newer in the list", members.Of{
		"PID": {list[0].PID, nil}, "reason": {list[0].Reason, api.ReasonNotFound}, "exit code": {list[0].ExitCode, 127},
		"terminal": {list[0].TTY, true}, "user": {list[0].User, "root"}, "an environment": {list[0].Env != nil, false},
	})
	members.Equal(t, "the older in the list", members.Of{
		"exit code": {list[1].ExitCode, 3}, "box": {list[1].BoxID, box.ID()}, "an environment": {list[1].Env != nil, false},
	})
}

// must returns a function that returns v, or fails the test if err is not nil.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func unknownExec(t *testing.T, s *suite) {
	ctx := s.context(t)
	box, stopped := s.box(t), s.box(t)
	e := s.start(t, stopped, options.Exec{Cmd: []string{"true"}})
	s.finish(t, e)
	if list := must(box.Execs(ctx))(t); list == nil || len(list) != 0 {
		t.Errorf("a new box lists %v", list)
	}
	cases := []struct {
		box, exec string
		kind      fault.Kind
	}{
		{box.ID(), "exec_aaaaaaaaaaaaaaaaaaaa", fault.ExecNotFound}, {box.ID(), "", fault.ExecNotFound},
		{box.ID(), "../x", fault.ExecNotFound}, {box.ID(), e.ID(), fault.ExecNotFound},
		{"box_aaaaaaaaaaaaaaaaaaaa", e.ID(), fault.BoxNotFound}, {"../x", e.ID(), fault.BoxNotFound},
	}
	if s.stops(t, stopped) {
		cases = append(cases, cases[0])
		cases[len(cases)-1].box, cases[len(cases)-1].exec, cases[len(cases)-1].kind = stopped.ID(), e.ID(), fault.InvalidState
		_, err := stopped.Execs(ctx)
		want(t, err, fault.InvalidState)
	}
	for _, tt := range cases {
		_, err := s.engine.FindExec(ctx, tt.box, tt.exec)
		want(t, err, tt.kind)
		_, err = s.engine.AwaitExec(ctx, tt.box, tt.exec)
		want(t, err, tt.kind)
		_, err = s.engine.CancelExec(ctx, tt.box, tt.exec, 0)
		want(t, err, tt.kind)
		_, err = s.engine.SignalExec(ctx, tt.box, tt.exec, 1)
		want(t, err, tt.kind)
		_, err = s.engine.InterruptExec(ctx, tt.box, tt.exec)
		want(t, err, tt.kind)
		_, err = s.engine.Attach(ctx, tt.box, tt.exec, nil)
		want(t, err, tt.kind)
	}
}

// attach tests that a second reader continues where the first one stopped.
func attach(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	dir := "/tmp/attach-" + box.ID()
	first := s.start(t, box, options.Exec{Cmd: sh("mkfifo " + dir + "; echo one >&2; read line <" + dir + "; rm " + dir + "; echo two; exit 4")})
	if err := first.Detach(); err != nil {
		t.Fatal(err)
	}
	second := must(box.Attach(ctx, first.ID()))(t)
	defer second.Close()
	if second.ID() != first.ID() || second.Stdin() != nil || second.Record().Status != api.ExecRunning {
		t.Errorf("attached to %+v", second.Record())
	}
	s.shell(t, box, "until test -p "+dir+"; do sleep 0.05; done; echo >"+dir).wants(t, exited(0))
	r := s.finish(t, second)
	if r.wants(t, exited(4)); r.out != "two\n" || r.err != "one\n" {
		t.Errorf("got %q, %q", r.out, r.err)
	}
}

func attachAfterEnd(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	for _, o := range []options.Exec{{Cmd: sh("echo out; exit 6")}, {Cmd: sh("echo out; exit 6"), TTY: true}} {
		e := s.start(t, box, o)
		if err := e.Detach(); err != nil {
			t.Fatal(err)
		}
		must(box.AwaitExec(ctx, e.ID()))(t)
		again := must(box.Attach(ctx, e.ID()))(t)
		r := s.finish(t, again)
		if r.wants(t, exited(6)); strings.TrimSpace(r.out) != "out" {
			t.Errorf("got %q, %q", r.out, r.err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		_, err := box.Attach(ctx, e.ID())
		want(t, err, fault.InvalidState) // its output was dropped
	}
}

func oneReader(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("read line; echo got $line"), Stdin: true})
	_, err := box.Attach(ctx, e.ID())
	want(t, err, fault.InvalidState)
	write(t, e, "it\n")
	if r := s.finish(t, e); r.out != "got it\n" {
		t.Errorf("got %q", r.out)
	}
}

// keptInput tests that a command's input survives its reader when that was
// asked for, and that it ends when it is closed.
func keptInput(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: []string{"cat"}, Stdin: true, KeepStdin: true})
	write(t, e, "one\n")
	for _, line := range []string{"two\n", "three\n"} {
		if err := e.Detach(); err != nil {
			t.Fatal(err)
		}
		e = must(box.Attach(ctx, e.ID()))(t)
		write(t, e, line)
	}
	if err := e.CloseStdin(ctx); err != nil {
		t.Error(err)
	}
	r := s.finish(t, e)
	if r.wants(t, exited(0)); r.out != "one\ntwo\nthree\n" {
		t.Errorf("got %q", r.out)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}

	e = s.start(t, box, options.Exec{Cmd: []string{"cat"}, Stdin: true})
	if err := e.Detach(); err != nil {
		t.Fatal(err)
	}
	if rec := must(box.AwaitExec(ctx, e.ID()))(t); rec.Status != api.ExecSucceeded {
		t.Errorf("input that nobody kept: %+v", rec)
	}
}

func await(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("read line; exit 8"), Stdin: true})
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := box.AwaitExec(short, e.ID())
	want(t, err, fault.Timeout)
	ended := make(chan api.Exec, 2)
	for range 2 {
		go func() {
			rec, err := box.AwaitExec(ctx, e.ID())
			if err != nil {
				t.Error(err)
			}
			ended <- rec
		}()
	}
	write(t, e, "\n")
	for range 2 {
		rec := <-ended
		members.Equal(t, "who waits is told", members.Of{"exit code": {rec.ExitCode, 8}, "id": {rec.ID, e.ID()}, "box": {rec.BoxID, box.ID()}})
	}
	s.finish(t, e).wants(t, exited(8))
	if rec := must(box.AwaitExec(ctx, e.ID()))(t); *rec.ExitCode != 8 {
		t.Errorf("after the end: %+v", rec)
	}
}

// awaitStop tests that a caller that waits for an exec learns of the box's
// stop.
func awaitStop(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("echo ready; exec sleep 1000")})
	ended := make(chan api.Exec, 1)
	s.watch(t, e, once(func(string) {
		waits := make(chan struct{})
		go func() {
			close(waits)
			rec, err := box.AwaitExec(ctx, e.ID())
			if err != nil && !fault.Is(err, fault.InvalidState) { // the stop came first
				t.Error(err)
			}
			ended <- rec
		}()
		<-waits
		s.shell(t, box, "sleep 0.2").wants(t, exited(0)) // gives the wait time to begin before the stop
		if _, err := box.Stop(ctx, grace); err != nil {
			t.Error(err)
		}
	})).wants(t, api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonBoxStopped, ExitCode: 128 + 15, Signal: 15})
	if rec := <-ended; rec.ID != "" && (*rec.Reason != api.ReasonBoxStopped || rec.Status != api.ExecFailed) {
		t.Errorf("got %+v", rec)
	}
}

// signalByID tests a signal to an exec whose output another reads.
func signalByID(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("trap 'echo caught; exit 8' USR1; echo ready; while :; do sleep 0.05; done")})
	r := s.watch(t, e, once(func(string) {
		rec, err := box.Signal(ctx, e.ID(), int(syscall.SIGUSR1))
		if err != nil || rec.ID != e.ID() {
			t.Errorf("got %+v, %v", rec, err)
		}
	}))
	if r.wants(t, exited(8)); r.out != "ready\ncaught\n" {
		t.Errorf("got %q", r.out)
	}
	_, err := box.Signal(ctx, e.ID(), int(syscall.SIGUSR1))
	want(t, err, fault.InvalidState)
}

func cancelByID(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("sleep 1000 & echo $!; wait")})
	var child string
	r := s.watch(t, e, once(func(line string) {
		child = line
		rec, err := box.Cancel(ctx, e.ID(), grace)
		members.Equal(t, "canceled", members.Of{
			"failure": {err, nil}, "status": {rec.Status, api.ExecCanceled}, "exit code": {rec.ExitCode, 128 + 15},
			"signal": {rec.Signal, 15}, "reason": {rec.Reason, api.ReasonCanceled},
		})
	}))
	r.wants(t, ended(api.ExecCanceled, api.ReasonCanceled, 15))
	s.gone(t, box, child)
	_, err := box.Cancel(ctx, e.ID(), grace)
	want(t, err, fault.InvalidState)
}
