package code

import (
	"context"
	"slices"
	"sync"

	"sandbox/core/fault"
)

// maxWaiting is how many runs may wait for one context.
const maxWaiting = 16

// turns has those who want to use the same thing wait for each other.
type turns struct {
	mu sync.Mutex
	// of has for each thing a line: the one whose turn it is, and those who wait. Nobody's
	// is removed.
	of map[string][]turn
}

// turn is a place in a line. It is closed when its turn comes.
type turn chan struct{}

// take waits until nobody else uses key, and returns a function that ends the turn.
// Errors: ResourceExhausted (too many wait), the reason for which ctx ended.
func (t *turns) take(ctx context.Context, key string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, fault.Of(ctx.Err())
	}
	mine, leave, err := t.join(key)
	if err != nil {
		return nil, err
	}
	if err := mine.wait(ctx); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// wait waits for the turn. It fails with the reason for which ctx ended.
func (mine turn) wait(ctx context.Context) error {
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
		return fault.Of(ctx.Err())
	}
}

// join takes a place at the end of the line. leave ends the turn, or gives the place up.
// Errors: ResourceExhausted (too many wait).
func (t *turns) join(key string) (mine turn, leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of[key]) > maxWaiting {
		return nil, nil, fault.New(fault.ResourceExhausted, "%d runs wait for this context already: wait for them, or make another context", maxWaiting)
	}
	mine, leave = t.enter(key, len(t.of[key]))
	return mine, leave, nil
}

// next is join, but with a place ahead of all who wait.
func (t *turns) next(key string) (mine turn, leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.enter(key, min(1, len(t.of[key])))
}

// enter takes a place in a line. mu is locked.
func (t *turns) enter(key string, at int) (mine turn, leave func()) {
	mine = make(turn)
	t.of[key] = slices.Insert(t.of[key], at, mine)
	if at == 0 {
		close(mine)
	}
	return mine, func() { t.part(key, mine) }
}

// part removes a place from a line, and has the turn of the next one come if it was the
// first.
func (t *turns) part(key string, mine turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.of[key], mine)
	line := slices.Delete(t.of[key], at, at+1)
	switch t.of[key] = line; {
	case len(line) == 0:
		delete(t.of, key)
	case at == 0:
		close(line[0])
	}
}
