package main

// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/backend"
)

//export sandbox_box_connect
func sandbox_box_connect(box *C.CBoxHandle, port C.int, out *C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out_fd")
		}
		*out = -1
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		conn, err := b.on.Connect(context.Background(), b.id, int(port))
		if err != nil {
			return err
		}
		fd, s, err := backend.NewSocket(conn)
		if err != nil {
			return err
		}
		if err := own(s, handle(unsafe.Pointer(box))); err != nil {
			return errors.Join(err, s.Close(), unix.Close(fd))
		}
		*out = C.int(fd)
		return nil
	})
}

// own has the runtime of a box end a socket, until it has ended by itself. C gets no
// handle of it.
func own(s *backend.Socket, box handle) error {
	h, err := putBeside(s, box)
	if err != nil {
		return err
	}
	go func() {
		<-s.Ended()
		take[*backend.Socket](h)
	}()
	return nil
}

//export sandbox_box_share
func sandbox_box_share(box *C.CBoxHandle, port, seconds C.int, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Share, error) {
		b, err := boxOf(box)
		if err != nil {
			return api.Share{}, err
		}
		return b.on.Share(context.Background(), b.id, int(port), time.Duration(seconds)*time.Second)
	})
}
