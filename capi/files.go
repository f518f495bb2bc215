package main

// #include "glue.h"
import "C"

import (
	"context"

	"sandbox/backend"
	"sandbox/hostcopy"
)

// copy_in implements sandbox_copy_in; see callbacks.c.
//
//export copy_in
func copy_in(box *C.CBoxHandle, hostPath, boxPath *C.cchar, to *C.progress, cerr *C.CSandboxError) C.SandboxErrorCode {
	return copied(box, hostPath, boxPath, to, cerr, func(b hostcopy.Box, host, path string, p hostcopy.Progress) error {
		_, err := hostcopy.In(context.Background(), b, host, path, p)
		return err
	})
}

// copy_out implements sandbox_copy_out; see callbacks.c.
//
//export copy_out
func copy_out(box *C.CBoxHandle, boxPath, hostPath *C.cchar, to *C.progress, cerr *C.CSandboxError) C.SandboxErrorCode {
	return copied(box, hostPath, boxPath, to, cerr, func(b hostcopy.Box, host, path string, p hostcopy.Progress) error {
		_, err := hostcopy.Out(context.Background(), b, path, host, p)
		return err
	})
}

// copied runs a copy between a path of the host and one of a box.
func copied(box *C.CBoxHandle, hostPath, boxPath *C.cchar, to *C.progress, cerr *C.CSandboxError, do func(b hostcopy.Box, host, path string, p hostcopy.Progress) error) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		host, err := required(hostPath, "host_path")
		if err != nil {
			return err
		}
		path, err := required(boxPath, "box_path")
		if err != nil {
			return err
		}
		return reported(to, func(report func(step)) error {
			return do(backend.Files{On: b.on, Ref: b.id}, host, path, bytesCopied(report))
		})
	})
}

// bytesCopied returns what a copy tells its progress to; nil if nobody asks.
func bytesCopied(report func(step)) hostcopy.Progress {
	if report == nil {
		return nil
	}
	return func(done int64) { report(step{stage: "copy", part: 1, parts: 1, done: done, total: -1}) }
}
