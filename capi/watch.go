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
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/feed"
	"sandbox/core/options"
)

// fileWatch is a watch that C holds a handle on.
type fileWatch struct {
	events *core.FileWatch
	// ready counts the events that wait, and the end, so that it can be polled.
	ready *os.File
}

// newFileWatch returns a watch that owns w. Errors: ResourceExhausted.
func newFileWatch(w *core.FileWatch) (fileWatch, error) {
	fd, err := unix.Eventfd(0, unix.EFD_SEMAPHORE|unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fileWatch{}, errors.Join(fault.Wrap(fault.ResourceExhausted, err, "make a descriptor for a watch"), w.Close())
	}
	ready := os.NewFile(uintptr(fd), "watch")
	next := func() (api.FileEvent, error) {
		e, err := w.Next(context.Background())
		_, _ = ready.Write(one) // fails when the watch was closed
		return e, err
	}
	return fileWatch{feed.New(feed.Small, next, func() { _ = w.Close() }, func() {}), ready}, nil
}

// one is what is written to a descriptor that counts.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// next waits for the next event.
func (w fileWatch) next(ctx context.Context) (api.FileEvent, error) {
	e, err := w.events.Next(ctx)
	if err == nil {
		_, _ = w.ready.Read(make([]byte, len(one)))
	}
	return e, err
}

// Close ends the watch, and a read that another thread waits in.
func (w fileWatch) Close() error {
	return errors.Join(w.events.Close(), w.ready.Close())
}

//export sandbox_watch_start
func sandbox_watch_start(box *C.CBoxHandle, path *C.cchar, recursive C.int, user *C.cchar, out **C.CSandboxWatch, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		name, err := required(path, "path")
		if err != nil {
			return err
		}
		w, err := b.on.WatchFiles(context.Background(), b.id, options.WatchFiles{Path: name, Recursive: recursive != 0, User: optional(user)})
		if err != nil {
			return err
		}
		watch, err := newFileWatch(w)
		if err != nil {
			return err
		}
		h, err := putBeside(watch, handle(unsafe.Pointer(box)))
		if err != nil {
			return errors.Join(err, watch.Close())
		}
		*out = (*C.CSandboxWatch)(h.address())
		return nil
	})
}

//export sandbox_watch_read
func sandbox_watch_read(watch *C.CSandboxWatch, timeout C.double, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (*api.FileEvent, error) {
		w, err := get[fileWatch](handle(unsafe.Pointer(watch)), "watch")
		if err != nil {
			return nil, err
		}
		return nextOf(timeout, w.next, "the watch has ended: its last event says why", "nothing has changed in this time")
	})
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
	case ctx.Err() != nil && err != nil:
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

//export sandbox_watch_fd
func sandbox_watch_fd(watch *C.CSandboxWatch, out *C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out_fd")
		}
		*out = -1
		w, err := get[fileWatch](handle(unsafe.Pointer(watch)), "watch")
		if err != nil {
			return err
		}
		raw, err := w.ready.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { *out = C.int(fd) })
		}
		return fault.Wrap(fault.Canceled, err, "the watch was released meanwhile")
	})
}

//export sandbox_watch_free
func sandbox_watch_free(watch *C.CSandboxWatch) {
	guard(nil, func() error {
		if w, ok := take[fileWatch](handle(unsafe.Pointer(watch))); ok {
			return w.Close()
		}
		return nil
	})
}
