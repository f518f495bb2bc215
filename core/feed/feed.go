// Package feed passes what one goroutine reads, as from a connection, to callers
// that wait for it only as long as they want.
package feed

import (
	"context"
	"sync"
)

// Feed has things of one kind, in their order. It is safe for concurrent use.
type Feed[T any] struct {
	things chan T
	stop   chan struct{}
	once   sync.Once
	err    error // why there are no more; set before things is closed
	cut    func()
}

// Small is how many things wait in a feed of small things, such as events.
const Small = 256

// New returns a feed of what read returns, until that fails. While waiting things wait
// to be taken, read is not called. The error behind the
// last thing is read's, io.EOF after a regular end. read is called in a goroutine,
// and so is release when nothing more is read. cut makes a read that waits fail.
func New[T any](waiting int, read func() (T, error), cut, release func()) *Feed[T] {
	f := &Feed[T]{things: make(chan T, waiting), stop: make(chan struct{}), cut: cut}
	go f.run(read, release)
	return f
}

func (f *Feed[T]) run(read func() (T, error), release func()) {
	defer close(f.things)
	defer release()
	for {
		thing, err := read()
		if f.err = f.reason(err); f.err != nil {
			return
		}
		select {
		case f.things <- thing:
		case <-f.stop:
			f.err = context.Canceled
			return
		}
	}
}

// reason returns why there is nothing more after read has returned err. What read
// makes of being cut is not for the callers, whether it fails or not.
func (f *Feed[T]) reason(err error) error {
	select {
	case <-f.stop:
		return context.Canceled
	default:
		return err
	}
}

// Next waits for the next thing. When ctx ends it returns the error of ctx, and
// nothing is lost. Other errors: that of the source, context.Canceled after Close.
func (f *Feed[T]) Next(ctx context.Context) (T, error) {
	select {
	case thing, ok := <-f.things:
		return f.taken(thing, ok)
	default:
	}
	select {
	case thing, ok := <-f.things:
		return f.taken(thing, ok)
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (f *Feed[T]) taken(thing T, ok bool) (T, error) {
	if !ok {
		return thing, f.err
	}
	return thing, nil
}

// Ready tells whether Next would return a thing at once.
func (f *Feed[T]) Ready() bool { return len(f.things) > 0 }

// Close ends the feed and waits until its goroutine has ended. It drops what was
// not taken. A second call does nothing.
func (f *Feed[T]) Close() error {
	f.once.Do(func() {
		close(f.stop)
		f.cut()
		for range f.things {
		}
	})
	return nil
}
