package main

// #include "glue.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/feed"
)

// events are what a handle of C tells one by one, with a descriptor that can be polled.
type events[T any] struct {
	feed *feed.Feed[T]
	// ready counts the events that wait, and the end, so that it can be polled.
	ready *os.File
}

// newEvents returns the events of a source, which they own. waiting bounds how many of
// them are held here. Errors: ResourceExhausted.
func newEvents[T any](source *feed.Feed[T], waiting int) (events[T], error) {
	fd, err := unix.Eventfd(0, unix.EFD_SEMAPHORE|unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return events[T]{}, errors.Join(fault.Wrap(fault.ResourceExhausted, err, "make a descriptor for events"), source.Close())
	}
	ready := os.NewFile(uintptr(fd), "events")
	next := func() (T, error) {
		e, err := source.Next(context.Background())
		_, _ = ready.Write(one) // fails when the handle was released
		return e, err
	}
	return events[T]{feed.New(waiting, next, func() { _ = source.Close() }, func() {}), ready}, nil
}

// one is what is written to a descriptor that counts.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// next waits for the next event.
func (e events[T]) next(ctx context.Context) (T, error) {
	event, err := e.feed.Next(ctx)
	if err == nil {
		_, _ = e.ready.Read(make([]byte, len(one)))
	}
	return event, err
}

// Close ends the source, and a read that another thread waits in.
func (e events[T]) Close() error {
	return errors.Join(e.feed.Close(), e.ready.Close())
}

// descriptor writes the descriptor that can be polled to out. Errors: InvalidArgument,
// Canceled (released meanwhile).
func (e events[T]) descriptor(out *C.int) error {
	raw, err := e.ready.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { *out = C.int(fd) })
	}
	return fault.Wrap(fault.Canceled, err, "the handle was released meanwhile")
}

// nextOf waits for the next event of a handle for so many seconds; -1 is for ever.
// Errors: InvalidState behind the last one, for which ended is the message; Timeout,
// for which quiet is; InvalidArgument (timeout); those of next.
func nextOf[T any](timeout C.double, next func(context.Context) (T, error), ended, quiet string) (*T, error) {
	ctx, cancel, err := waiting(float64(timeout))
	if err != nil {
		return nil, err
	}
	defer cancel()
	e, err := next(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fault.New(fault.InvalidState, "%s", ended)
	case errors.Is(err, context.DeadlineExceeded) && !fault.Classified(err): // that of ctx, which hides no failure of the source
		return nil, fault.New(fault.Timeout, "%s", quiet)
	}
	return &e, err
}

// waiting returns a context for a wait of so many seconds; -1 is for ever.
func waiting(timeout float64) (context.Context, context.CancelFunc, error) {
	if timeout == -1 || math.IsInf(timeout, 1) {
		ctx, cancel := context.WithCancel(context.Background())
		return ctx, cancel, nil
	}
	d, err := seconds("timeout_secs", timeout)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(d, time.Nanosecond))
	return ctx, cancel, nil
}
