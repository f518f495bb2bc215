package inits

import (
	"context"
	"sync"

	"sandbox/core"
	"sandbox/core/engine/wire"
)

// reading holds the counts of the execs that this process reads. A box's init
// hears of them when the box is measured, and at the latest when they are left.
type reading struct {
	mu    sync.Mutex
	boxes map[string]map[string]*core.Streams // by the ids of box and exec
}

// reads notes that this process reads the exec p of a box.
func (c *Client) reads(box string, p *core.Process) {
	p.Record.BoxID = box
	r, id := &c.reading, p.Record.ID
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes == nil {
		r.boxes = map[string]map[string]*core.Streams{}
	}
	if r.boxes[box] == nil {
		r.boxes[box] = map[string]*core.Streams{}
	}
	r.boxes[box][id] = p.Streams
	own := p.Control.(*control)
	own.unread = func() { r.forget(box, id, p.Streams) }
	if c.far {
		own.resize = func(ctx context.Context, cols, rows int) error {
			return c.resize(ctx, box, wire.Resize{ID: id, Cols: cols, Rows: rows})
		}
	}
}

// forget forgets an exec, unless this process has taken it up again meanwhile.
func (r *reading) forget(box, id string, streams *core.Streams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes[box][id] != streams {
		return
	}
	delete(r.boxes[box], id)
	if len(r.boxes[box]) == 0 {
		delete(r.boxes, box)
	}
}

// of returns the counts of the execs of a box.
func (r *reading) of(box string) map[string]wire.Streams {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]wire.Streams, len(r.boxes[box]))
	for id, streams := range r.boxes[box] {
		all[id] = counted(streams)
	}
	return all
}

func counted(s *core.Streams) wire.Streams {
	return wire.Streams{Stdin: s.Stdin.Load(), Output: s.Output.Load()}
}
