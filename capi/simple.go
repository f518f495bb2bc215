package main

// #include <stdlib.h>
// #include "glue.h"
import "C"

import (
	"context"
	"unsafe"

	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// maxCollected is how many bytes sandbox_simple_run keeps of a stream.
const maxCollected = 64 << 20

// simple is a box with a runtime of its own. Closing the runtime removes the
// box.
type simple struct{ boxRef }

//export sandbox_simple_new
func sandbox_simple_new(image *C.cchar, cpus, memory C.int, out **C.CSandboxSimple, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		name, err := required(image, "image")
		if err != nil {
			return err
		}
		s, err := newSimple(name, int(cpus), int(memory))
		if err != nil {
			return err
		}
		h, err := put(s, 0)
		*out = (*C.CSandboxSimple)(h.address())
		return err
	})
}

func newSimple(image string, cpus, memory int) (*simple, error) {
	o := options.Defaults()
	o.Image = image
	if cpus > 0 {
		o.CPUs = cpus
	}
	if memory > 0 {
		o.MemoryMiB = memory
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	host, err := open("", nil)
	if err != nil {
		return nil, err
	}
	on := backend.OnHost(host)
	made, err := on.CreateBox(context.Background(), o)
	if err != nil {
		_ = on.Close(context.Background()) // err says more
		return nil, err
	}
	return &simple{boxRef{on, made.ID}}, nil
}

//export sandbox_simple_run
func sandbox_simple_run(s *C.CSandboxSimple, command *C.cchar, args *C.cstrings, argc C.int, out **C.CSandboxExecResult, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		one, err := get[*simple](handle(unsafe.Pointer(s)), "simple")
		if err != nil {
			return err
		}
		cmd, err := argvOf(command, args, int(argc))
		if err != nil {
			return err
		}
		var c collector
		code, err := run(&one.boxRef, options.Exec{Cmd: cmd}, make([]byte, core.OutputBuffer), c.add)
		if err != nil {
			return err
		}
		*out = newResult(code, c)
		return nil
	})
}

func argvOf(command *C.cchar, args *C.cstrings, argc int) ([]string, error) {
	name, err := required(command, "command")
	if err != nil {
		return nil, err
	}
	if argc < 0 {
		return nil, fault.New(fault.InvalidArgument, "argc is %d and must not be negative", argc)
	}
	argv := []string{name}
	if argc == 0 {
		return argv, nil
	}
	if args == nil {
		return nil, null("args")
	}
	for _, arg := range unsafe.Slice((**C.cchar)(unsafe.Pointer(args)), argc) {
		text, err := required(arg, "an element of args")
		if err != nil {
			return nil, err
		}
		argv = append(argv, text)
	}
	return argv, nil
}

// collector collects a command's output.
type collector struct{ stdout, stderr []byte }

// add appends what was read to the stream that it came from. It fails with
// ResourceExhausted when there is too much.
func (c *collector) add(stderr bool, read []byte) error {
	to := &c.stdout
	if stderr {
		to = &c.stderr
	}
	if len(*to)+len(read) > maxCollected {
		return fault.New(fault.ResourceExhausted, "the command wrote more than %d MiB and was killed: use sandbox_execute, which has no limit", maxCollected>>20)
	}
	*to = append(*to, read...)
	return nil
}

func newResult(code int, c collector) *C.CSandboxExecResult {
	r := (*C.CSandboxExecResult)(C.malloc(C.sizeof_CSandboxExecResult))
	r.exit_code = C.int(code)
	r.stdout_text, r.stderr_text = newString(c.stdout), newString(c.stderr)
	return r
}

//export sandbox_result_free
func sandbox_result_free(r *C.CSandboxExecResult) {
	if r == nil {
		return
	}
	C.free(unsafe.Pointer(r.stdout_text))
	C.free(unsafe.Pointer(r.stderr_text))
	C.free(unsafe.Pointer(r))
}

//export sandbox_simple_free
func sandbox_simple_free(s *C.CSandboxSimple) {
	guard(nil, func() error {
		if s, ok := take[*simple](handle(unsafe.Pointer(s))); ok {
			return s.on.Close(context.Background())
		}
		return nil
	})
}
