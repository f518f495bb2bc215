package main

// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"io"
	"math"
	"time"
	"unsafe"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// fileWatch is a watch that C holds a handle on.
type fileWatch struct {
	*core.FileWatch
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
		h, err := putBeside(fileWatch{w}, handle(unsafe.Pointer(box)))
		if err != nil {
			return errors.Join(err, w.Close())
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
		ctx, cancel, err := waiting(float64(timeout))
		if err != nil {
			return nil, err
		}
		defer cancel()
		e, err := w.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil, fault.New(fault.InvalidState, "the watch has ended: its last event says why")
		case ctx.Err() != nil && err != nil:
			return nil, fault.New(fault.Timeout, "nothing has changed in this time")
		}
		return &e, err
	})
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

//export sandbox_watch_free
func sandbox_watch_free(watch *C.CSandboxWatch) {
	guard(nil, func() error {
		if w, ok := take[fileWatch](handle(unsafe.Pointer(watch))); ok {
			return w.Close()
		}
		return nil
	})
}
