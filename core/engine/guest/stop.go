package guest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// stop ends the box: it sends SIGTERM to every process, SIGKILL to those that
// are left after grace, and then ends init. A main command with a signal of its own gets
// that first, and the others get SIGTERM when it has ended. The ends of the execs that still run
// are published before that.
func (g *guest) stop(conn *wire.Conn, grace time.Duration) {
	empty := make(chan struct{})
	g.mu.Lock()
	if g.stopping {
		g.mu.Unlock()
		return // the first stop ends the box for this request too
	}
	g.stopping, g.empty = true, empty
	main := g.main
	for _, e := range g.children {
		e.mu.Lock()
		if e.ending == "" {
			e.ending = api.ReasonBoxStopped
		}
		e.mu.Unlock()
	}
	g.mu.Unlock()

	deadline := time.Now().Add(grace)
	main.askToEnd(deadline)
	_ = unix.Kill(-1, unix.SIGTERM) // every process but init
	for g.reapOne() {               // also notices if no process is left
	}
	select {
	case <-empty:
	case <-time.After(time.Until(deadline)):
		_ = unix.Kill(-1, unix.SIGKILL)
		<-empty
	}
	g.awaitTelling()
	_ = conn.Send(wire.TypeStopped, nil)
	os.Exit(0)
}

// tellingTime bounds how long a stop waits until those who wait for the end of
// an exec have been told.
const tellingTime = time.Second

func (g *guest) awaitTelling() {
	told := make(chan struct{})
	go func() { g.telling.Wait(); close(told) }()
	select {
	case <-told:
	case <-time.After(tellingTime):
	}
}
