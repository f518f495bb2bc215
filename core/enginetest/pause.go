package enginetest

import (
	"io"
	"strings"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/members"
)

// pause tests the state paused: what is refused in it, and that a command's output
// comes to its reader when the box is resumed.
func pause(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	is := func(state api.BoxStatus, rec core.Record, err error) {
		t.Helper()
		members.Equal(t, "the box", members.Of{
			"failure": {err, nil}, "state": {rec.Status, state}, "a PID": {rec.PID > 0, state.Up()},
			"a pause": {rec.PausedAt != nil, state == api.Paused}, "a stop": {rec.StoppedAt != nil, state == api.Stopped},
		})
	}
	_, err := box.Resume(ctx)
	want(t, err, fault.InvalidState)
	e := s.start(t, box, options.Exec{Cmd: sh("echo ready; read line; echo $line; exit 7"), Stdin: true})
	r := s.watch(t, e, once(func(string) {
		rec, err := box.Pause(ctx, false)
		is(api.Paused, rec, err)
		rec, err = s.engine.Get(ctx, box.ID())
		is(api.Paused, rec, err)
		s.refusesPaused(t, box, e.ID())
		write(t, e, "heard\n")
		rec, err = box.Resume(ctx)
		is(api.Running, rec, err)
	}))
	if r.wants(t, exited(7)); r.out != "ready\nheard\n" {
		t.Errorf("got %q", r.out)
	}
	s.shell(t, box, "exit 3").wants(t, exited(3))
}

// pausing is content in whose middle a box is paused and resumed.
type pausing struct {
	io.Reader
	between func()
}

// Read implements [io.Reader].
func (p *pausing) Read(b []byte) (int, error) {
	if n, err := p.Reader.Read(b[:1]); n > 0 || p.between == nil {
		return n, err
	}
	p.between()
	p.between, p.Reader = nil, strings.NewReader("more")
	return p.Reader.Read(b)
}

// pausedUpload tests that an upload that is under way when its box is paused goes on.
func pausedUpload(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	content := &pausing{strings.NewReader("some "), func() {
		if _, err := box.Pause(ctx, false); err != nil {
			t.Error("pause: ", err)
		}
		if _, err := box.Resume(ctx); err != nil {
			t.Error("resume: ", err)
		}
	}}
	made, err := box.Upload(ctx, core.Upload{Dest: s.dir(t, box) + "/file"}, content)
	if err != nil || made.Size != int64(len("some more")) {
		t.Errorf("an upload with a pause in it: %+v, %v", made, err)
	}
}

// refusesPaused wants a paused box to refuse what needs its processes, and to answer
// the rest.
func (s *suite) refusesPaused(t *testing.T, box *core.Box, execID string) {
	t.Helper()
	ctx := s.context(t)
	refused := map[string]error{"remove without force": s.engine.Remove(ctx, box.ID(), false)}
	_, refused["pause"] = box.Pause(ctx, false)
	_, refused["start"] = box.Start(ctx)
	_, refused["exec"] = box.Exec(ctx, options.Exec{Cmd: []string{"true"}})
	_, refused["cancel"] = box.Cancel(ctx, execID, grace)
	_, refused["signal"] = box.Signal(ctx, execID, 10)
	_, refused["upload"] = box.Upload(ctx, core.Upload{Dest: "/tmp/" + box.ID()}, strings.NewReader("x"))
	_, refused["download"] = box.Download(ctx, options.Download{Path: "/etc/passwd"})
	_, refused["stat of a file"] = box.StatFile(ctx, options.StatFile{Path: "/etc/passwd"})
	for what, err := range refused {
		if !fault.Is(err, fault.InvalidState) || !strings.Contains(err.Error(), "paused") {
			t.Errorf("%s of a paused box: %v", what, err)
		}
	}
	if execs, err := box.Execs(ctx); err != nil || len(execs) != 1 || execs[0].Status != api.ExecRunning {
		t.Errorf("execs of a paused box: %+v, %v", execs, err)
	}
	if rec, err := box.ExecRecord(ctx, execID); err != nil || rec.Status != api.ExecRunning {
		t.Errorf("the exec of a paused box: %+v, %v", rec, err)
	}
	if _, err := box.Usage(ctx); err != nil {
		t.Error("usage of a paused box: ", err)
	}
}

// pausedEnds tests that a paused box can be stopped and removed, and that a stopped
// one can't be paused.
func pausedEnds(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	e := s.start(t, box, options.Exec{Cmd: sh("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done")})
	r := s.watch(t, e, once(func(string) {
		if _, err := box.Pause(ctx, false); err != nil {
			t.Error("pause: ", err)
		}
		if rec, err := box.Stop(ctx, grace); err != nil || rec.Status != api.Stopped || rec.PausedAt != nil {
			t.Errorf("stop of a paused box: %+v, %v", rec, err)
		}
	}))
	if r.Reason != api.ReasonBoxStopped || r.out != "ready\nbye\n" {
		t.Errorf("the command of a paused box that was stopped: %+v", r)
	}
	_, err := box.Pause(ctx, false)
	want(t, err, fault.InvalidState)
	_, err = box.Resume(ctx)
	want(t, err, fault.InvalidState)

	for _, autoRemove := range []bool{false, true} {
		removed := s.box(t, func(o *options.Box) { o.AutoRemove = autoRemove })
		s.start(t, removed, options.Exec{Cmd: sh("exec sleep 1000")})
		if _, err := removed.Pause(ctx, false); err != nil {
			t.Error("pause: ", err)
		}
		if err := s.engine.Remove(ctx, removed.ID(), true); err != nil {
			t.Error("remove of a paused box: ", err)
		}
		_, err = s.engine.Get(ctx, removed.ID())
		want(t, err, fault.BoxNotFound)
	}
}
