package main

// #include "glue.h"
import "C"

import (
	"context"
	"time"
	"unsafe"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// execute implements sandbox_execute and sandbox_execute_cmd; see callbacks.c.
//
//export execute
func execute(box *C.CBoxHandle, cmd *C.SandboxCommand, to *C.output, out *C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return guard(cerr, func() error {
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		if out == nil {
			return null("out_exit_code")
		}
		o, err := commandOf(cmd)
		if err != nil {
			return err
		}
		code, err := stream(b, o, to)
		if err == nil || fault.Is(err, fault.Execution) {
			*out = C.int(code)
		}
		return err
	})
}

func commandOf(cmd *C.SandboxCommand) (o options.Exec, err error) {
	if cmd == nil {
		return o, null("cmd")
	}
	command, err := required(cmd.command, "command")
	if err != nil {
		return o, err
	}
	var args []string
	if cmd.args_json != nil {
		if args, err = options.DecodeArgs(document(cmd.args_json)); err != nil {
			return o, err
		}
	}
	if cmd.env_json != nil {
		if o.Env, err = options.DecodeEnv(document(cmd.env_json)); err != nil {
			return o, err
		}
	}
	o.Cmd = append([]string{command}, args...)
	o.WorkingDir, o.User = optional(cmd.workdir), optional(cmd.user)
	o.Timeout, err = seconds("timeout_secs", float64(cmd.timeout_secs))
	return o, err
}

// maxTimeout is the longest time in seconds, some 31 years.
const maxTimeout = 1e9

// seconds converts a time in seconds. Errors: InvalidArgument, naming the
// parameter.
func seconds(parameter string, s float64) (time.Duration, error) {
	if !(s >= 0 && s <= maxTimeout) { // written so that NaN is refused
		return 0, fault.New(fault.InvalidArgument, "%s is %g and must be from 0 to %g", parameter, s, maxTimeout)
	}
	return time.Duration(s * float64(time.Second)), nil
}

// stream runs a command and passes its output to C, on the thread that C called
// from.
func stream(b *boxRef, o options.Exec, to *C.output) (int, error) {
	if to.callback == nil {
		return run(b, o, make([]byte, core.OutputBuffer), func(bool, []byte) error { return nil })
	}
	p := newPieces(func(stderr bool, text []byte) {
		isStderr := C.int(0)
		if stderr {
			isStderr = 1
		}
		C.call_output(to, (*C.cchar)(unsafe.Pointer(&text[0])), isStderr)
	})
	defer p.flush()
	return run(b, o, p.room(), func(stderr bool, read []byte) error {
		p.read(stderr, len(read))
		return nil
	})
}

// run runs a command until it ends. If sink fails, the command is killed.
func run(b *boxRef, o options.Exec, buf []byte, sink func(stderr bool, read []byte) error) (int, error) {
	if err := o.Check(); err != nil {
		return 0, err
	}
	ctx := context.Background()
	c, err := b.on.Run(ctx, b.id, o)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }() // its end is known by then
	status, err := backend.Pass(ctx, c, buf, sink)
	if err != nil {
		_ = c.Cancel(ctx, 0) // err says more
		return 0, err
	}
	return verdict(status)
}

// verdict returns the end of a command as C sees it. The exit code is valid
// also with an Execution failure.
func verdict(s api.ExitStatus) (int, error) {
	switch {
	case s.Reason == api.ReasonNotFound, s.Reason == api.ReasonNotExecutable:
		return s.ExitCode, fault.New(fault.Execution, "the command can't be started: %s", s.Message)
	case s.Reason == api.ReasonTimedOut:
		return 0, fault.New(fault.Timeout, "the command ran longer than its time limit and was killed")
	case s.Reason == api.ReasonBoxStopped:
		return 0, fault.New(fault.Canceled, "the box was stopped while the command ran")
	case s.Reason == api.ReasonCanceled:
		return 0, fault.New(fault.Canceled, "the command was canceled")
	case s.Status == api.ExecLost:
		return 0, fault.New(fault.Engine, "the box's init died while the command ran")
	case s.Signal != 0:
		return -s.Signal, nil
	}
	return s.ExitCode, nil
}
