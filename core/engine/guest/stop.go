package guest

import (
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// stop ends the box and then init. A second stop returns at once: the first one ends the
// box for it too.
func (g *guest) stop(conn *wire.Conn, grace time.Duration) {
	if !g.end(grace) {
		return
	}
	if err := g.save(); err != nil {
		g.resume()
		fail(conn, err)
		return
	}
	_ = conn.Send(wire.TypeStopped, nil)
	g.quit()
}

// end sends SIGTERM to every process, and SIGKILL to those that are left after grace. A main command with a signal of its own gets
// that first, and the others get SIGTERM when it has ended. The ends of the execs that still run
// are published before it returns. It returns false, at once, if the box is being ended already.
func (g *guest) end(grace time.Duration) bool {
	empty := make(chan struct{})
	g.mu.Lock()
	if g.stopping {
		g.mu.Unlock()
		return false
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
	return true
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
