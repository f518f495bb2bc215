package main

// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"unsafe"

	"sandbox/api"
	"sandbox/core/feed"
	"sandbox/core/options"
)

// fileWatch is a watch that C holds a handle on.
type fileWatch struct{ events[api.FileEvent] }

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
		told, err := newEvents(w, feed.Small)
		if err != nil {
			return err
		}
		h, err := putBeside(fileWatch{told}, handle(unsafe.Pointer(box)))
		if err != nil {
			return errors.Join(err, told.Close())
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
		return w.descriptor(out)
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
