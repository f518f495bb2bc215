package guest

import (
	"errors"
	"time"

	"sandbox/core/engine/wire"
)

// errPaused is the failure of a request that needs processes of the box to run.
var errPaused = errors.New("the box is paused: resume it")

// busy returns why nothing can be started in the box now, or nil. g.mu is held.
func (g *guest) busy() error {
	switch {
	case g.stopping, time.Now().Before(g.use.held):
		return errStopping
	case g.pod.waits():
		return errUnclaimed
	case g.paused:
		return errPaused
	}
	return nil
}

// ready is busy for who does not hold g.mu.
func (g *guest) ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy()
}

// awake returns errPaused while the box is paused.
func (g *guest) awake() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused {
		return errPaused
	}
	return nil
}

// handlePause prepares the box to be paused, or lets it go on: nothing new is
// started and all clocks of execs stand still until it is resumed. The shim
// freezes the processes after the answer to a pause, and lets them go on before it
// asks for a resume; init itself goes on, for those who list execs and measure the
// box. Both may be asked for twice. A shim that has given up a pause has hung up before it
// asks for the resume, which may have been done by now. A late resume is done all the same:
// a box that nobody paused again would stay paused.
func (g *guest) handlePause(conn *wire.Conn, paused bool) error {
	g.mu.Lock() // a command that is being started has been started then
	if paused && conn.HungUp() {
		g.mu.Unlock()
		return nil
	}
	g.paused = paused
	if paused {
		g.clocks.pause()
	} else {
		g.clocks.resume()
		g.use.last, g.use.held = time.Now(), time.Time{}
	}
	g.mu.Unlock()
	return conn.Send(wire.TypeReady, nil)
}
