package guest

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// The delays before a main command is started again are docker's: the first one is too
// short to be noticed by who uses a service that failed once, and each is twice the one
// before, so that a command that can't work does not keep the box busy. A command that
// has run for steady worked, so the next delay is the first one again.
const (
	firstDelay   = 100 * time.Millisecond
	longestDelay = time.Minute
	steady       = 10 * time.Second
)

// service keeps the main command of the box running. It is init's, so that it needs no
// other process: it goes on when the shim and the daemon have died. All its clocks are
// the box's, which stand still in a pause.
type service struct {
	g     *guest
	asked wire.Supervise

	mu      sync.Mutex // taken behind g.mu, and before no other
	state   wire.Main
	changed chan struct{} // closed at the next change
	told    *wire.Conn    // the shim; nil while there is none
	run     *exec         // the last run
	delay   time.Duration // before the next start
	checks  checks        // of that run
}

// handleSupervise starts the main command, unless that was done before, and tells the
// shim how it is doing for as long as the shim is there.
func (g *guest) handleSupervise(conn *wire.Conn, f wire.Frame) error {
	var r wire.Supervise
	if err := f.Decode(&r); err != nil {
		return err
	}
	if len(r.Cmd) == 0 {
		return wire.ErrProtocol
	}
	g.mu.Lock()
	if g.pod.waits() {
		g.mu.Unlock()
		return errUnclaimed
	}
	first := g.main == nil
	if first {
		g.main = &service{g: g, asked: r, changed: make(chan struct{}), state: wire.Main{Command: api.CommandState{Status: api.CommandWaiting}}}
	}
	s := g.main
	g.mu.Unlock()
	if first {
		s.start()
	}
	return s.tell(conn)
}

// tell sends the state, and sends it again after each change, until the shim hangs up. A
// shim that does not read misses states, and gets the last one.
func (s *service) tell(conn *wire.Conn) error {
	s.mu.Lock()
	s.told = conn
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.told == conn { // and not another shim
			s.told = nil
		}
	}()
	gone := awaitHangUp(conn)
	for {
		s.mu.Lock()
		state, changed := s.state, s.changed
		s.mu.Unlock()
		if err := conn.Send(wire.TypeMain, state); err != nil {
			return nil
		}
		select {
		case <-changed:
		case <-gone:
			return nil
		}
	}
}

// set changes the state and publishes it. s.mu is held.
func (s *service) set(change func(*wire.Main)) {
	change(&s.state)
	close(s.changed)
	s.changed = make(chan struct{})
}

// waits reports whether the command is about to be started again.
func (s *service) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Command.Status == api.CommandWaiting
}

// start starts the command. A box that is held or short of something for now can't: then
// it is tried again in a while. A clock that goes off just before a pause ends here too;
// the next one stands still.
func (s *service) start() {
	e, err := s.g.start(wire.Start{Cmd: s.asked.Cmd}, nil, ofMain)
	if err != nil {
		s.g.mu.Lock()
		stopping := s.g.stopping
		s.g.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if !stopping {
			s.wait()
		}
		return
	}
	s.mu.Lock()
	before := s.run
	s.run = e
	s.set(func(m *wire.Main) {
		if before != nil {
			m.Command.Restarts++
		}
		m.Command.Status, m.Command.ExecID = api.CommandRunning, e.id
		m.Health = s.beginChecks(e)
	})
	s.mu.Unlock()
	s.g.mu.Lock()
	if !s.g.stopping { // else the end of the box says all
		s.g.telling.Add(1)
		go s.await(e)
	}
	s.g.mu.Unlock()
}

// wait has the command started again after the next delay. s.mu is held.
func (s *service) wait() {
	s.delay = min(max(2*s.delay, firstDelay), longestDelay)
	s.set(func(m *wire.Main) { m.Command.Status = api.CommandWaiting })
	s.g.clocks.after(s.delay, s.start)
}

// await waits for the end of a run. A stop of the box waits until the shim has been told
// of it.
func (s *service) await(e *exec) {
	defer s.g.telling.Done()
	<-e.done
	s.g.mu.Lock()
	stopping := s.g.stopping
	s.g.mu.Unlock()
	s.mu.Lock()
	s.endChecks()
	if time.Since(e.created) >= steady {
		s.delay = 0
	}
	s.set(func(m *wire.Main) { m.Command.ExitCode, m.Health = &e.status.ExitCode, nil })
	if !stopping && s.again(*e.status) {
		s.wait()
	} else {
		s.set(func(m *wire.Main) { m.Command.Status = api.CommandEnded })
	}
	state, told := s.state, s.told
	s.mu.Unlock()
	if stopping && told != nil {
		_ = told.Send(wire.TypeMain, state) // init may end before tell sends it
	}
}

// again reports whether the command is started again after an end. One that somebody
// canceled is not. s.mu is held.
func (s *service) again(end api.ExitStatus) bool {
	if end.Status == api.ExecCanceled {
		return false
	}
	switch s.asked.Restart {
	case api.RestartAlways:
		return true
	case api.RestartOnFailure:
		return end.Status != api.ExecSucceeded && (s.asked.MaxRestarts == 0 || s.state.Command.Restarts < s.asked.MaxRestarts)
	}
	return false
}

// askToEnd sends the command the signal that ends it, if that is not SIGTERM, and waits
// until it has ended, or until the deadline.
func (s *service) askToEnd(deadline time.Time) {
	if s == nil || s.asked.StopSignal == 0 {
		return
	}
	s.mu.Lock()
	e := s.run
	s.mu.Unlock()
	if e == nil || !e.signal(unix.Signal(s.asked.StopSignal), false) {
		return
	}
	select {
	case <-e.done:
	case <-time.After(time.Until(deadline)):
	}
}

// awaitHangUp returns a channel that is closed when the other side has hung up.
func awaitHangUp(conn *wire.Conn) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			f, err := conn.Recv() // ends with the connection
			if err != nil {
				return
			}
			f.CloseFDs()
		}
	}()
	return gone
}
