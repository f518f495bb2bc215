package guest

import (
	"slices"

	"sandbox/core/engine/wire"
)

// telling are the requests in which a reader says what it has counted. A program
// of an earlier version says nothing.
var telling = []wire.Type{wire.TypeCloseStdin, wire.TypeRelease, wire.TypeDetach}

// told counts what a reader says of an exec's streams in a request, if it does.
func (g *guest) told(e *exec, f wire.Frame) {
	var now wire.Streams
	if slices.Contains(telling, f.Type) && len(f.Body) > 0 && f.Decode(&now) == nil {
		g.count(e, now)
	}
}

// count adds to the box's counts what is new in those of an exec. They count from
// the exec's start, so nothing is counted twice if it is told twice.
func (g *guest) count(e *exec, now wire.Streams) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.streams
	e.streams = wire.Streams{Stdin: max(before.Stdin, now.Stdin), Output: max(before.Output, now.Output)}
	g.stdin.Add(e.streams.Stdin - before.Stdin)
	g.output.Add(e.streams.Output - before.Output)
}

// handleStats answers with the counts of the box, when all that was told before
// has been counted.
func (g *guest) handleStats(conn *wire.Conn, f wire.Frame) error {
	var r wire.Measure
	if len(f.Body) > 0 {
		if err := f.Decode(&r); err != nil {
			return err
		}
	}
	g.mu.Lock()
	execs := slices.Clone(g.order)
	g.mu.Unlock()
	for _, e := range execs {
		e.settle()
		e.mu.Unlock()
		if now, ok := r.Read[e.id]; ok {
			g.count(e, now)
		}
	}
	now := wire.Stats{
		Execs: g.started.Load(), ExecErrors: g.failed.Load(),
		Streams: wire.Streams{Stdin: g.stdin.Load(), Output: g.output.Load()},
	}
	if g.pod != nil {
		now.Used = ownUse()
	}
	return conn.Send(wire.TypeStatsIs, now)
}
