package guest

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// checks are the health checks of one run of the main command. They are guarded by
// service.mu.
type checks struct {
	of       *exec  // the run; nil when it has ended
	starting bool   // failures don't count yet
	next     *clock // of the next check
	grace    *clock // of the start period
	now      *exec  // the check that runs; nil for none
}

// beginChecks begins the checks of a run, and returns the first state: nil without a
// check. s.mu is held.
func (s *service) beginChecks(run *exec) *api.HealthState {
	h := s.asked.Health
	if h == nil {
		return nil
	}
	s.checks = checks{of: run, starting: h.StartPeriodMS > 0}
	if s.checks.starting {
		s.checks.grace = s.g.clocks.after(milliseconds(h.StartPeriodMS), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.checks.of == run {
				s.checks.starting = false
			}
		})
	}
	s.plan()
	return &api.HealthState{Status: api.HealthStarting}
}

// endChecks ends the checks, and the one that runs. s.mu is held.
func (s *service) endChecks() {
	c := s.checks
	s.checks = checks{}
	c.next.stop()
	c.grace.stop()
	if c.now != nil {
		go c.now.end(api.ReasonCanceled, 0)
	}
}

// plan sets the clock of the next check. s.mu is held.
func (s *service) plan() {
	after := s.asked.Health.IntervalMS
	if s.checks.starting {
		after = s.asked.Health.StartIntervalMS
	}
	run := s.checks.of
	s.checks.next = s.g.clocks.after(milliseconds(after), func() { s.check(run) })
}

// check runs one check of a run. A box that is held or short of something can't: then
// nothing is known, and the next check comes as if there had been this one.
func (s *service) check(run *exec) {
	e, err := s.g.start(wire.Start{Cmd: testOf(s.asked.Health), TimeoutMS: s.asked.Health.TimeoutMS}, nil, ofCheck)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.checks.of == run {
			s.plan()
		}
		return
	}
	s.mu.Lock()
	late := s.checks.of != run // it ended meanwhile
	if !late {
		s.checks.now = e
	}
	s.mu.Unlock()
	if late {
		e.end(api.ReasonCanceled, 0)
	}
	s.checked(run, e, e.capture())
}

// checked takes the result of a check into account.
func (s *service) checked(run, check *exec, output string) {
	s.g.mu.Lock()
	stopping := s.g.stopping
	s.g.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checks.of != run || stopping {
		return
	}
	s.checks.now = nil
	if next := s.judge(*check.status, output); !same(next, *s.state.Health) {
		s.set(func(m *wire.Main) { m.Health = &next })
	}
	s.plan()
}

// judge returns the state after a check. s.mu is held.
func (s *service) judge(end api.ExitStatus, output string) api.HealthState {
	next := *s.state.Health
	next.ExitCode, next.Output = &end.ExitCode, output
	switch {
	case end.Status == api.ExecSucceeded:
		next.Status, next.FailingStreak, s.checks.starting = api.Healthy, 0, false
	case s.checks.starting:
	default:
		next.FailingStreak++
		if next.FailingStreak >= s.asked.Health.Retries {
			next.Status = api.Unhealthy
		}
	}
	return next
}

func same(a, b api.HealthState) bool {
	codes := (a.ExitCode == nil) == (b.ExitCode == nil) && (a.ExitCode == nil || *a.ExitCode == *b.ExitCode)
	return codes && a.Status == b.Status && a.FailingStreak == b.FailingStreak && a.Output == b.Output
}

// testOf returns the command of a check.
func testOf(h *api.HealthCheck) []string {
	if h.Test[0] == api.HealthShell {
		return append([]string{"/bin/sh", "-c"}, h.Test[1:]...)
	}
	return h.Test[1:]
}

// maxDrained bounds how many bytes of a check's output init reads and drops. A check that
// prints more waits, until its time is over: so it can't keep init busy.
const maxDrained = 16 << 20

// lateOutput is how long output is still read when a check has ended, if a process that
// has left its group holds the pipes.
const lateOutput = 200 * time.Millisecond

// capture waits for the end of a check and returns the first bytes of what it printed. It
// ends what the check has left running.
func (e *exec) capture() string {
	e.mu.Lock()
	fds := []int{e.files.out, e.files.err}
	e.files = files{out: -1, err: -1, in: -1}
	e.mu.Unlock()
	var kept beginning
	var reading sync.WaitGroup
	var pipes []*os.File
	for _, fd := range fds {
		pipe := os.NewFile(uintptr(fd), "output")
		pipes = append(pipes, pipe)
		reading.Go(func() { _, _ = io.Copy(&kept, io.LimitReader(pipe, maxDrained)) })
	}
	<-e.done
	e.killRest()
	for _, pipe := range pipes {
		_ = pipe.SetReadDeadline(time.Now().Add(lateOutput))
	}
	reading.Wait()
	for _, pipe := range pipes {
		_ = pipe.Close()
	}
	return strings.ToValidUTF8(string(kept.bytes), "\uFFFD")
}

// killRest ends what is left of the tree of an exec that has ended.
func (e *exec) killRest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pid != 0 {
		_ = e.group.kill()
	}
}

// beginning keeps the first bytes that are written to it.
type beginning struct {
	mu    sync.Mutex
	bytes []byte
}

// Write never fails.
func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes = append(b.bytes, p[:min(len(p), wire.MaxHealthOutput-len(b.bytes))]...)
	return len(p), nil
}
