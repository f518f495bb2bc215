package guest

import (
	"time"

	"sandbox/core/engine/wire"
)

// use tells since when nobody uses the box. It is guarded by guest.mu.
type use struct {
	connections int       // of host processes that use it
	last        time.Time // when the last use ended; or else the box began, or was resumed
	held        time.Time // until then nothing is started: the shim is about to end the box
}

// holding is how long the shim has to end a box that is not used. If it has died
// meanwhile, the box goes on then.
const holding = 5 * time.Second

// uses reports whether a request uses the box, for as long as its connection lasts. A
// box is not used by who only looks at it, nor by who ends it. A command counts by
// itself, as long as it runs and whoever reads it.
func uses(t wire.Type) bool {
	switch t {
	case wire.TypeStart, wire.TypeAttach, wire.TypeStop, wire.TypePause, wire.TypeResume, wire.TypeIdle, wire.TypeStats,
		wire.TypeSupervise, wire.TypeExecs, wire.TypeFind, wire.TypeAwait, wire.TypeEnd, wire.TypeKill:
		return false
	}
	return true
}

// enter counts a connection that uses the box, until leave.
func (g *guest) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.use.connections++
}

func (g *guest) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.use.connections--
	g.use.last = time.Now()
}

// touch is a use that ends at once.
func (g *guest) touch() {
	g.enter()
	g.leave()
}

// handleIdle answers since when nobody uses the box. If that is as long as is asked
// for, nothing is started until the shim has ended the box.
func (g *guest) handleIdle(conn *wire.Conn, f wire.Frame) error {
	var r wire.Idle
	if err := f.Decode(&r); err != nil {
		return err
	}
	return conn.Send(wire.TypeIdleIs, g.unused(r.AtLeastMS))
}

func (g *guest) unused(atLeastMS int64) wire.IdleIs {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.use.connections > 0 || g.working() {
		return wire.IdleIs{InUse: true}
	}
	since := time.Since(g.use.last).Milliseconds()
	if since >= atLeastMS {
		g.use.held = time.Now().Add(holding)
	}
	return wire.IdleIs{MS: since}
}

// working reports whether a command runs, or the main one is about to run again. Health
// checks are no use of the box. g.mu is held.
func (g *guest) working() bool {
	for _, e := range g.children {
		if e.kind != ofCheck {
			return true
		}
	}
	return g.main != nil && g.main.waits()
}
