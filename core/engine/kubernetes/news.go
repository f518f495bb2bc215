package kubernetes

import (
	"context"
	"sync"
)

// news wakes all who wait for a change of something.
type news struct {
	mu      sync.Mutex
	changed chan struct{} // closed and made anew at each change
}

func newNews() *news { return &news{changed: make(chan struct{})} }

// tell wakes all who wait.
func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

// changes returns a channel that is closed at the next change.
func (n *news) changes() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// await asks ready at once and after each change, until it returns true, an error, or ctx
// ends. Errors: those of ready and of ctx.
func (n *news) await(ctx context.Context, ready func() (bool, error)) error {
	for {
		changed := n.changes()
		if done, err := ready(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
