package main

// #include "glue.h"
import "C"

import (
	"context"
	"errors"
	"io"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/fault"
)

// execution is a command that C holds a handle on.
type execution struct {
	backend.Command
	box  *boxRef
	ctx  context.Context    // ends with the handle
	free context.CancelFunc // ends ctx, and the read that another thread waits in

	reading sync.Mutex // held by the thread that reads or waits
	reader  backend.Reader
	ended   bool // the reader has returned io.EOF
}

//export sandbox_exec_start
func sandbox_exec_start(box *C.CBoxHandle, cmd *C.ccommand, openStdin C.int, terminal *C.cterminal, out **C.CSandboxExecution, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveExecution(box, out, cerr, func(b *boxRef) (backend.Command, error) {
		o, err := commandOf((*C.SandboxCommand)(cmd))
		if err != nil {
			return nil, err
		}
		o.Stdin = openStdin != 0
		if terminal != nil {
			o.TTY, o.Stdin, o.Cols, o.Rows = true, true, int(terminal.cols), int(terminal.rows)
		}
		if err := o.Check(); err != nil {
			return nil, err
		}
		return b.on.Run(context.Background(), b.id, o)
	}, func(c backend.Command) { _ = c.Cancel(context.Background(), 0) }) // what failed before says more
}

//export sandbox_exec_attach
func sandbox_exec_attach(box *C.CBoxHandle, id *C.cchar, out **C.CSandboxExecution, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveExecution(box, out, cerr, func(b *boxRef) (backend.Command, error) {
		exec, err := required(id, "exec_id")
		if err != nil {
			return nil, err
		}
		return b.on.Join(context.Background(), b.id, exec, true)
	}, func(backend.Command) {})
}

// giveExecution runs a call whose result is a command of the box, and stores a
// handle on it in out. The handle is owned by the runtime: it outlives the
// box's. A command that can't have a handle is closed, and undo comes before.
func giveExecution(box *C.CBoxHandle, out **C.CSandboxExecution, cerr *C.CSandboxError, which func(*boxRef) (backend.Command, error), undo func(backend.Command)) C.SandboxErrorCode {
	return guard(cerr, func() error {
		if out == nil {
			return null("out")
		}
		*out = nil
		b, err := boxOf(box)
		if err != nil {
			return err
		}
		c, err := which(b)
		if err != nil {
			return err
		}
		x, err := newExecution(b, c)
		if err != nil {
			undo(c)
			return errors.Join(err, c.Close())
		}
		h, err := putBeside(x, handle(unsafe.Pointer(box)))
		if err != nil {
			undo(c)
			return errors.Join(err, x.Close())
		}
		*out = (*C.CSandboxExecution)(h.address())
		return nil
	})
}

// newExecution owns c, unless it fails.
func newExecution(b *boxRef, c backend.Command) (*execution, error) {
	ctx, free := context.WithCancel(context.Background())
	r, err := c.Reader(ctx)
	if err != nil {
		free()
		return nil, err
	}
	return &execution{Command: c, box: b, ctx: ctx, free: free, reader: r}, nil
}

// Close ends the use of the command, and the read that another thread waits in.
func (x *execution) Close() error {
	x.free()
	return x.leave()
}

// leave ends the use of the command when nobody reads any more.
func (x *execution) leave() error {
	x.reading.Lock()
	defer x.reading.Unlock()
	x.reader.Close()
	return x.Command.Close()
}

// read calls do unless another thread reads or waits.
func (x *execution) read(do func() error) error {
	if !x.reading.TryLock() {
		return fault.New(fault.InvalidState, "another thread reads this execution or waits for its end: one does at a time")
	}
	defer x.reading.Unlock()
	return do()
}

func executionOf(e *C.CSandboxExecution) (*execution, error) {
	return get[*execution](handle(unsafe.Pointer(e)), "execution")
}

// withExecution calls do with the execution that e refers to.
func withExecution(e *C.CSandboxExecution, cerr *C.CSandboxError, do func(*execution) error) C.SandboxErrorCode {
	return guard(cerr, func() error {
		x, err := executionOf(e)
		if err != nil {
			return err
		}
		return do(x)
	})
}

//export sandbox_exec_list
func sandbox_exec_list(box *C.CBoxHandle, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() ([]api.Exec, error) {
		b, err := boxOf(box)
		if err != nil {
			return nil, err
		}
		execs, err := b.on.Execs(context.Background(), b.id)
		return append([]api.Exec{}, execs...), err
	})
}

//export sandbox_exec_info
func sandbox_exec_info(e *C.CSandboxExecution, out **C.char, cerr *C.CSandboxError) C.SandboxErrorCode {
	return giveJSON(out, cerr, func() (api.Exec, error) {
		x, err := executionOf(e)
		if err != nil {
			return api.Exec{}, err
		}
		return x.box.on.Exec(context.Background(), x.box.id, x.ID())
	})
}

//export sandbox_exec_id
func sandbox_exec_id(e *C.CSandboxExecution) (id *C.char) {
	withExecution(e, nil, func(x *execution) error {
		id = newString([]byte(x.ID()))
		return nil
	})
	return id
}

//export sandbox_exec_read
func sandbox_exec_read(e *C.CSandboxExecution, buffer unsafe.Pointer, capacity C.size_t, outLength *C.size_t, outStream *C.SandboxStream, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		switch {
		case outLength == nil:
			return null("out_length")
		case buffer == nil:
			return null("buffer")
		case capacity == 0:
			return fault.New(fault.InvalidArgument, "capacity is 0 and must be at least 1")
		}
		*outLength = 0
		buf := unsafe.Slice((*byte)(buffer), min(uint64(capacity), maxPiece))
		return x.read(func() error {
			n, stderr, err := x.piece(buf)
			*outLength = C.size_t(n)
			if n > 0 && outStream != nil {
				*outStream = streamOf(stderr)
			}
			return err
		})
	})
}

// maxPiece bounds what one read takes: Linux reads no more at once.
const maxPiece = 1 << 30

func streamOf(stderr bool) C.SandboxStream {
	if stderr {
		return C.SANDBOX_STDERR
	}
	return C.SANDBOX_STDOUT
}

// piece reads a piece of output. It returns 0 at the end. x.reading is held.
func (x *execution) piece(buf []byte) (n int, stderr bool, err error) {
	if x.ended {
		return 0, false, nil
	}
	n, stderr, err = x.reader.Read(buf)
	if errors.Is(err, io.EOF) {
		x.ended, err = true, nil
	}
	return n, stderr, err
}

//export sandbox_exec_wait
func sandbox_exec_wait(e *C.CSandboxExecution, out *C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		if out == nil {
			return null("out_exit_code")
		}
		return x.read(func() error {
			if err := x.reader.Drain(); err != nil {
				return err
			}
			x.ended = true
			code, err := verdict(x.reader.Status())
			if err == nil || fault.Is(err, fault.Execution) {
				*out = C.int(code)
			}
			return err
		})
	})
}

//export sandbox_exec_fd
func sandbox_exec_fd(e *C.CSandboxExecution, stream C.SandboxStream, out *C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		if out == nil {
			return null("out_fd")
		}
		*out = -1
		fd, err := x.FD(backend.Stream(stream))
		if err == nil {
			*out = C.int(fd)
		}
		return err
	})
}

//export sandbox_exec_write_stdin
func sandbox_exec_write_stdin(e *C.CSandboxExecution, data *C.cvoid, length C.size_t, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		in := x.Input()
		switch {
		case data == nil && length > 0:
			return null("data")
		case in == nil:
			return fault.New(fault.InvalidState, "the command was started without an open input")
		case length == 0:
			return nil
		}
		_, err := in.Write(unsafe.Slice((*byte)(unsafe.Pointer(data)), length))
		if err != nil && x.ctx.Err() != nil {
			err = fault.Of(x.ctx.Err())
		}
		return err
	})
}

//export sandbox_exec_close_stdin
func sandbox_exec_close_stdin(e *C.CSandboxExecution, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		if in := x.Input(); in != nil {
			return in.Close()
		}
		return nil
	})
}

//export sandbox_exec_kill
func sandbox_exec_kill(e *C.CSandboxExecution, grace C.double, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		d, err := seconds("grace_secs", float64(grace))
		if err != nil {
			return err
		}
		return x.Cancel(x.ctx, d)
	})
}

//export sandbox_exec_signal
func sandbox_exec_signal(e *C.CSandboxExecution, number C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		if number < 1 || number > lastSignal {
			return fault.New(fault.InvalidArgument, "signal_number is %d and must be from 1 to %d", int(number), lastSignal)
		}
		return x.Signal(x.ctx, unix.Signal(number))
	})
}

// lastSignal is Linux's SIGRTMAX.
const lastSignal = 64

//export sandbox_exec_resize
func sandbox_exec_resize(e *C.CSandboxExecution, cols, rows C.int, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(x *execution) error {
		if cols < 1 || cols > maxSize || rows < 1 || rows > maxSize {
			return fault.New(fault.InvalidArgument, "cols and rows are %d and %d and must be from 1 to %d", int(cols), int(rows), maxSize)
		}
		return x.Resize(x.ctx, int(cols), int(rows))
	})
}

// maxSize is the largest size of a terminal in each direction: struct winsize
// has 16 bits for it.
const maxSize = 1<<16 - 1

//export sandbox_exec_detach
func sandbox_exec_detach(e *C.CSandboxExecution, cerr *C.CSandboxError) C.SandboxErrorCode {
	return withExecution(e, cerr, func(*execution) error {
		x, ok := take[*execution](handle(unsafe.Pointer(e)))
		if !ok {
			return fault.New(fault.InvalidArgument, "execution was released during the call")
		}
		_ = x.Detach() // leave says whether it worked
		err := x.leave()
		x.free()
		return err
	})
}

//export sandbox_exec_free
func sandbox_exec_free(e *C.CSandboxExecution) {
	guard(nil, func() error {
		if x, ok := take[*execution](handle(unsafe.Pointer(e))); ok {
			return x.Close()
		}
		return nil
	})
}
