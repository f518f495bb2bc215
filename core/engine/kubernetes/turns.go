package kubernetes

import (
	"context"
	"sync"

	"sandbox/core/fault"
)

// turns has one change of each box at a time in this process: so a start waits until a
// stop is done.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by the id of the box; closed at the end of its turn
}

// take waits for the turn of a box. The turn ends when the returned function is called.
func (t *turns) take(ctx context.Context, id string) (end func(), err error) {
	for {
		t.mu.Lock()
		before := t.held[id]
		if before == nil {
			mine := make(chan struct{})
			if t.held == nil {
				t.held = map[string]chan struct{}{}
			}
			t.held[id] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.held, id)
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, fault.Of(ctx.Err())
		case <-before:
		}
	}
}
