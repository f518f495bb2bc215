package code

import (
	"context"
	"sync"

	"sandbox/core/fault"
)

// maxWaiting is how many runs may wait for one context.
const maxWaiting = 16

// turns has those who want to use the same thing wait for each other.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // nobody's is removed
}

type turn struct {
	held  chan struct{}
	users int // the one whose turn it is, and those who wait
}

// take waits until nobody else uses key, and returns a function that ends the turn.
// Errors: ResourceExhausted (too many wait), the reason for which ctx ended.
func (t *turns) take(ctx context.Context, key string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, fault.Of(ctx.Err())
	}
	mine, err := t.join(key)
	if err != nil {
		return nil, err
	}
	select {
	case mine.held <- struct{}{}:
		return func() {
			<-mine.held
			t.part(key)
		}, nil
	case <-ctx.Done():
		t.part(key)
		return nil, fault.Of(ctx.Err())
	}
}

func (t *turns) join(key string) (*turn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.of[key]
	if mine == nil {
		mine = &turn{held: make(chan struct{}, 1)}
		t.of[key] = mine
	}
	if mine.users > maxWaiting {
		return nil, fault.New(fault.ResourceExhausted, "%d runs wait for this context already: wait for them, or make another context", maxWaiting)
	}
	mine.users++
	return mine, nil
}

func (t *turns) part(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine := t.of[key]; mine.users > 1 {
		mine.users--
		return
	}
	delete(t.of, key)
}
