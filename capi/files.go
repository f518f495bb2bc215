package main

// #include "glue.h"
import "C"

import (
	"context"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/options"
	"sandbox/hostcopy"
)

// copy_in implements sandbox_copy_in; see callbacks.c.
//
//export copy_in
func copy_in(box *C.CBoxHandle, hostPath, boxPath, user *C.cchar, to *C.progress, cerr *C.CSandboxError) C.SandboxErrorCode {
	return copied(box, hostPath, boxPath, user, to, cerr, func(b hostcopy.Box, host, path string, p hostcopy.Progress) error {
		_, err := hostcopy.In(context.Background(), b, host, path, p)
		return err
	})
}

// copy_out implements sandbox_copy_out; see callbacks.c.
//
//export copy_out
func copy_out(box *C.CBoxHandle, boxPath, hostPath, user *C.cchar, to *C.progress, cerr *C.CSandboxError) C.SandboxErrorCode {
	return copied(box, hostPath, boxPath, user, to, cerr, func(b hostcopy.Box, host, path string, p hostcopy.Progress) error {
		_, err := hostcopy.Out(context.Background(), b, path, host, p)
		return err
	})
}

// copied runs a copy between a path of the host and one of a box.
func copied(box *C.CBoxHandle, hostPath, boxPath, user *C.cchar, to *C.progress, cerr *C.CSandboxError, do func(b hostcopy.Box, host, path string, p hostcopy.Progress) error) C.SandboxErrorCode {
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
			return do(backend.Files{On: b.on, Ref: b.id, User: optional(user)}, host, path, bytesCopied(report))
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

//export sandbox_file_stat
func sandbox_file_stat(box *C.CBoxHandle, path, user *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return onFile(box, path, "path", out, cerr, func(b *boxRef, path string) (api.File, error) {
		return b.on.StatFile(context.Background(), b.id, options.StatFile{Path: path, User: optional(user)})
	})
}

//export sandbox_file_list
func sandbox_file_list(box *C.CBoxHandle, path *C.cchar, depth, pageSize C.int, pageToken, user *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return onFile(box, path, "path", out, cerr, func(b *boxRef, path string) (api.Files, error) {
		return b.on.ListFiles(context.Background(), b.id, options.ListFiles{
			Path: path, Depth: int(depth), PageSize: int(pageSize), PageToken: optional(pageToken), User: optional(user),
		})
	})
}

//export sandbox_file_make_dir
func sandbox_file_make_dir(box *C.CBoxHandle, path *C.cchar, mode C.int, user *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return onFile(box, path, "path", out, cerr, func(b *boxRef, path string) (api.MadeDirectory, error) {
		o := options.MakeDirectory{Path: path, User: optional(user)}
		if mode != -1 {
			bits := int(mode)
			o.Mode = &bits
		}
		return b.on.MakeDirectory(context.Background(), b.id, o)
	})
}

//export sandbox_file_move
func sandbox_file_move(box *C.CBoxHandle, from, to, user *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return onFile(box, from, "from", out, cerr, func(b *boxRef, from string) (api.File, error) {
		dest, err := required(to, "to")
		if err != nil {
			return api.File{}, err
		}
		return b.on.MoveFile(context.Background(), b.id, options.MoveFile{From: from, To: dest, User: optional(user)})
	})
}

//export sandbox_file_remove
func sandbox_file_remove(box *C.CBoxHandle, path *C.cchar, recursive C.int, user *C.cchar, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return onFile(box, path, "path", out, cerr, func(b *boxRef, path string) (api.RemovedFiles, error) {
		return b.on.RemoveFile(context.Background(), b.id, options.RemoveFile{Path: path, Recursive: recursive != 0, User: optional(user)})
	})
}

// onFile runs a call about a path of a box, whose result is a JSON document.
func onFile[T any](box *C.CBoxHandle, path *C.cchar, parameter string, out **C.char, cerr *C.CSandboxError, do func(*boxRef, string) (T, error)) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (T, error) {
		var none T
		b, err := boxOf(box)
		if err != nil {
			return none, err
		}
		name, err := required(path, parameter)
		if err != nil {
			return none, err
		}
		return do(b, name)
	})
}
