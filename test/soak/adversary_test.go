package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sandbox/core/engine/wire"
	"sandbox/core/sockets"
	"sandbox/test/boxes"
)

// disturb disturbs in each way once, in the order in which they are given, or by
// chance as long as time says. Between two of them, and before the first, calls
// are answered.
func (s *soak) disturb(long time.Duration, ways []func()) {
	end := time.Now().Add(long)
	for i := 0; s.ctx.Err() == nil && (i < len(ways) || time.Now().Before(end)); i++ {
		s.awaitCalls(40)
		next := i
		if i >= len(ways) {
			next = s.rng.IntN(len(ways))
		}
		ways[next]()
	}
	s.awaitCalls(40)
}

// awaitCalls waits until so many more calls have been answered.
func (s *soak) awaitCalls(n int64) {
	for want := s.answered.Load() + n; s.answered.Load() < want && s.pause(nil); {
	}
}

// while lets a disturbance last until some calls have met it, or for a time:
// what is short of something may answer none.
func (s *soak) while() {
	most := time.Now().Add(time.Second + time.Duration(s.rng.IntN(2000))*time.Millisecond)
	for want := s.answered.Load() + 60; s.answered.Load() < want && time.Now().Before(most) && s.pause(nil); {
	}
}

// pause waits a moment. It returns false when stop is closed or the deadline is
// over.
func (s *soak) pause(stop <-chan struct{}) bool {
	select {
	case <-time.After(20 * time.Millisecond):
		return true
	case <-stop:
	case <-s.ctx.Done():
	}
	return false
}

// killDaemon kills the daemon, at any moment of what it does, and starts another.
func (s *soak) killDaemon() {
	end := s.begin(daemonKilled)
	defer end()
	s.daemon.signal(os.Kill)
	if s.rng.IntN(2) == 0 {
		s.killShim()
	}
	must(s.t, s.daemon.start(0))
}

// killShim kills the shim. The next one starts with the next call that needs it.
func (s *soak) killShim() {
	end := s.begin(shimKilled)
	defer end()
	must(s.t, kill(s.shimPID()))
	if s.daemonLives() {
		s.sweep()
	}
}

// shimPID asks the shim who it is, until it answers: a host program may be about
// to start it.
func (s *soak) shimPID() int {
	dir, err := sockets.OpenDir(filepath.Join(s.home, "engine"))
	must(s.t, err)
	defer dir.Close()
	for {
		pid, err := greeted(dir)
		if err == nil {
			return pid
		}
		if !s.pause(nil) {
			s.t.Fatal("the shim does not answer: ", err)
		}
	}
}

// greeted returns the number that a shim greets with.
func greeted(dir *os.File) (int, error) {
	conn, err := wire.Dial(dir, wire.ShimSocket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	f, err := conn.Recv()
	if err != nil {
		return 0, err
	}
	var hello wire.Hello
	err = f.Decode(&hello)
	return hello.PID, err
}

func (s *soak) daemonLives() bool {
	select {
	case <-s.daemon.end:
		return false
	default:
		return true
	}
}

// sweep has the shim sweep the home, which starts it. Nothing is so old that it
// goes.
func (s *soak) sweep() {
	w := s.newWorker("adversary")
	_ = w.insist(sweep, "the home", func() error {
		_, err := w.c.GC(s.ctx, 24*time.Hour)
		return err
	})
}

// shortDaemon leaves the daemon no more than a few free descriptors.
func (s *soak) shortDaemon() { s.short(daemonShort, s.daemon.cmd.Process.Pid) }

// shortShim does the same to the shim.
func (s *soak) shortShim() { s.short(shimShort, s.shimPID()) }

func (s *soak) short(way way, pid int) {
	end := s.begin(way)
	defer end()
	enough := boxes.Descriptors(s.t, pid, uint64(descriptors(s.t, pid)+s.rng.IntN(6)))
	defer enough()
	s.while()
}

// startShort starts a daemon, and with it a shim, that may have few descriptors
// from the beginning.
func (s *soak) startShort() {
	killed, short := s.begin(daemonKilled), s.begin(startedShort)
	defer short()
	s.daemon.signal(os.Kill)
	shim := s.begin(shimKilled)
	must(s.t, kill(s.shimPID()))
	if err := s.daemon.start(24 + s.rng.IntN(40)); err != nil {
		s.t.Log("a daemon with few descriptors: ", err)
	} else {
		s.while()
	}
	s.daemon.signal(os.Interrupt)
	must(s.t, s.daemon.start(0))
	killed()
	s.sweep()
	must(s.t, kill(s.shimPID())) // one that was started short stays so
	s.sweep()
	shim()
}

// fillDisk fills the home's disk.
func (s *soak) fillDisk() {
	end := s.begin(diskFull)
	defer end()
	stop, full := make(chan struct{}), make(chan error)
	go func() { full <- s.fill(stop) }()
	s.while()
	close(stop)
	must(s.t, <-full)
}

// killHost has the host programs killed.
func (s *soak) killHost() {
	end := s.begin(hostKilled)
	defer end()
	s.running.mu.Lock()
	defer s.running.mu.Unlock()
	for pid := range s.running.pids {
		_ = kill(pid) // one that has just ended is as good
	}
}

// descriptors counts those of a process.
func descriptors(t interface{ Fatal(...any) }, pid int) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
