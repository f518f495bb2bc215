package guest

import (
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// stop ends the box and then init. A second stop has the outcome of the first one, or
// returns at once where the box has no disk to save: it ends for both.
func (g *guest) stop(conn *wire.Conn, grace time.Duration) {
	first, err := g.finish(grace)
	switch {
	case err != nil:
		fail(conn, err)
	case first:
		_ = conn.Send(wire.TypeStopped, nil)
		g.quit()
		g.awaitLeave(conn)
	case g.keeps():
		_ = conn.Send(wire.TypeStopped, nil)
		g.awaitLeave(conn)
	}
}

// awaitLeave waits until the other side has the answer and leaves. A pod ends when no
// connection is left, and what is on its way to the engine then would be lost.
func (g *guest) awaitLeave(conn *wire.Conn) {
	if g.pod != nil {
		_, _ = conn.Recv() // nothing comes any more
	}
}

// ending is an end of the box that has begun.
type ending struct {
	done chan struct{} // closed when the disk was saved, or err says why not
	err  error
}

// finish ends the box and saves its disk. If that fails, the box goes on. It returns
// whether it was the first to do so; if not, with the outcome of the first.
func (g *guest) finish(grace time.Duration) (first bool, err error) {
	first = g.end(grace)
	g.mu.Lock()
	now := g.ending
	g.mu.Unlock()
	if first {
		if now.err = g.save(); now.err != nil {
			g.resume()
		}
		close(now.done)
	}
	if !first && !g.keeps() {
		return false, nil
	}
	<-now.done
	return first, now.err
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
	g.stopping, g.empty, g.ending = true, empty, &ending{done: make(chan struct{})}
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
