package guest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// stop ends the box: SIGTERM to every process, SIGKILL to those left after
// grace, then init itself. Open execs get their end before.
func (g *guest) stop(conn *wire.Conn, grace time.Duration) {
	empty := make(chan struct{})
	g.mu.Lock()
	if g.stopping {
		g.mu.Unlock()
		return // the first one's end is this one's too
	}
	g.stopping, g.empty = true, empty
	for _, e := range g.children {
		e.mu.Lock()
		if e.ending == "" {
			e.ending = api.ReasonBoxStopped
		}
		e.mu.Unlock()
	}
	g.mu.Unlock()

	_ = unix.Kill(-1, unix.SIGTERM) // everyone but init
	for g.reapOne() {               // also finds out that there is no one
	}
	select {
	case <-empty:
	case <-time.After(grace):
		_ = unix.Kill(-1, unix.SIGKILL)
		<-empty
	}
	g.awaitTelling()
	_ = conn.Send(wire.TypeStopped, nil)
	os.Exit(0)
}

// tellingTime is what those who wait for the end of an exec get to read it.
const tellingTime = time.Second

func (g *guest) awaitTelling() {
	told := make(chan struct{})
	go func() { g.telling.Wait(); close(told) }()
	select {
	case <-told:
	case <-time.After(tellingTime):
	}
}
