package core

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/fault"
)

// drain is how long output is still read after a command's own process has
// ended while a background child holds its pipes (contract, section 3).
const drain = 200 * time.Millisecond

// OutputBuffer is the size of buffer to hand to [Exec.Stream]: what a pipe holds.
const OutputBuffer = 64 << 10

// Exec is a command in a box. Stream is called once, by one goroutine; the
// other methods may be called beside it. Close ends the use of it.
type Exec struct {
	p      *Process
	errors *atomic.Int64
}

// ID returns the exec's id.
func (e *Exec) ID() string { return e.p.Record.ID }

// Record returns what is known of the exec from its start; see [api.Exec.Ended].
func (e *Exec) Record() api.Exec { return e.p.Record }

// Output returns the ends of the command's pipes, which don't block, to a reader
// that does without Stream; stderr is nil with a terminal, which is stdout.
func (e *Exec) Output() (stdout, stderr *os.File) { return e.p.Stdout, e.p.Stderr }

// ExitFD is a descriptor that polls readable once Exit has its answer.
func (e *Exec) ExitFD() int { return e.p.ExitFD() }

// Exit returns the end of the command's own process once ExitFD is readable. It
// is called once, and not beside Stream, which does.
func (e *Exec) Exit() (api.ExitStatus, error) {
	status, err := e.p.Exit()
	if err == nil && (status.Reason == api.ReasonNotFound || status.Reason == api.ReasonNotExecutable) {
		e.errors.Add(1)
	}
	return status, err
}

// CloseStdin ends the command's input, also when its input is kept open for others.
func (e *Exec) CloseStdin(ctx context.Context) error { return e.p.CloseStdin(ctx) }

// Stdin is the command's input: close it to give EOF. Nil unless asked for.
// With a terminal it is the terminal.
func (e *Exec) Stdin() *os.File { return e.p.Stdin }

// Signal sends a signal to the command's own process. Errors: InvalidState.
func (e *Exec) Signal(ctx context.Context, sig int) error { return e.p.Signal(ctx, sig) }

// Cancel ends the command's whole process tree: SIGTERM, SIGKILL after grace.
func (e *Exec) Cancel(ctx context.Context, grace time.Duration) error {
	return e.p.Cancel(ctx, grace)
}

// HangUp tells the command's whole tree that its terminal has gone: SIGHUP, and
// after grace SIGKILL for what is left, also when the command itself has ended.
func (e *Exec) HangUp(ctx context.Context, grace time.Duration) error {
	return e.p.HangUp(ctx, grace)
}

// Resize sets the size of the terminal.
func (e *Exec) Resize(ctx context.Context, cols, rows int) error { return e.p.Resize(ctx, cols, rows) }

// Detach ends the use of the exec and keeps its output for [Box.Attach].
func (e *Exec) Detach() error { return e.p.Detach() }

// Close ends our use of the exec. The command goes on.
func (e *Exec) Close() error { return e.p.Release() }

// Stream reads all output into buf, hands each piece to sink, and gives the
// end of the command. sink runs on the caller's goroutine and thread, and the
// command waits for it; p is valid until sink returns. It ends early with
// sink's error, or with ctx's; the command then goes on and its output waits.
//
// Waiting is one poll(2) on the caller's own thread: no other goroutine, so
// that a callback into C stays on the thread that C called from.
func (e *Exec) Stream(ctx context.Context, buf []byte, sink func(stderr bool, p []byte) error) (api.ExitStatus, error) {
	wake, err := newWaker(ctx)
	if err != nil {
		return api.ExitStatus{}, err
	}
	defer wake.close()
	s := streamer{e: e, buf: buf, sink: sink, out: fdOf(e.p.Stdout), err: fdOf(e.p.Stderr), exit: e.ExitFD()}
	for s.reading() {
		if err := s.step(wake.fd); err != nil {
			return api.ExitStatus{}, err
		}
		if err := ctx.Err(); err != nil {
			return api.ExitStatus{}, fault.Of(err)
		}
	}
	return s.status, nil
}

// streamer is the state of one Stream: descriptors turn -1 once they ended.
type streamer struct {
	e              *Exec
	buf            []byte
	sink           func(bool, []byte) error
	out, err, exit int
	status         api.ExitStatus
	deadline       time.Time // of what is still read after the exit
}

// reading tells whether there is something left to wait for.
func (s *streamer) reading() bool {
	if s.exit >= 0 {
		return true
	}
	return (s.out >= 0 || s.err >= 0) && time.Now().Before(s.deadline)
}

// step waits once and takes what is there. poll(2) ignores descriptors of -1.
func (s *streamer) step(wake int) error {
	fds := [4]unix.PollFd{
		{Fd: int32(s.out), Events: unix.POLLIN}, {Fd: int32(s.err), Events: unix.POLLIN},
		{Fd: int32(s.exit), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN},
	}
	if _, err := unix.Poll(fds[:], s.timeout()); err != nil {
		if errors.Is(err, unix.EINTR) {
			return nil
		}
		return fault.Wrap(fault.Internal, err, "wait for output")
	}
	if fds[0].Revents != 0 {
		if err := s.read(&s.out, false); err != nil {
			return err
		}
	}
	if fds[1].Revents != 0 {
		if err := s.read(&s.err, true); err != nil {
			return err
		}
	}
	if fds[2].Revents != 0 {
		return s.ended()
	}
	return nil
}

// timeout is how long poll may wait, in ms; -1 for ever.
func (s *streamer) timeout() int {
	if s.exit >= 0 {
		return -1
	}
	return int(time.Until(s.deadline).Milliseconds()) + 1
}

func (s *streamer) read(fd *int, stderr bool) error {
	n, err := unix.Read(*fd, s.buf)
	for tty := s.e.p.Stderr == nil; tty && n > 0 && n < len(s.buf) && readable(*fd); {
		// A terminal gives what it has in many small pieces.
		more, _ := unix.Read(*fd, s.buf[n:]) // a failure comes again
		if more <= 0 {
			break
		}
		n += more
	}
	switch {
	case n > 0:
		return s.sink(stderr, s.buf[:n])
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil
	case err == nil, errors.Is(err, unix.EIO): // EIO: the last user of a terminal has gone
		*fd = -1
		return nil
	}
	return fault.Wrap(fault.Internal, err, "read output")
}

// readable tells whether a read would not wait. Not by O_NONBLOCK: the box's
// init shares that flag, and may be hostile.
func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}

func (s *streamer) ended() error {
	status, err := s.e.Exit()
	if err != nil {
		return err
	}
	s.status, s.exit, s.deadline = status, -1, time.Now().Add(drain)
	return nil
}

func fdOf(f *os.File) int {
	if f == nil {
		return -1
	}
	return int(f.Fd())
}

// waker turns the end of a context into something that poll sees.
type waker struct {
	fd   int
	w    io.Closer
	stop func() bool
}

func newWaker(ctx context.Context) (*waker, error) {
	if ctx.Done() == nil {
		return &waker{fd: -1}, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fault.Wrap(fault.ResourceExhausted, err, "make an eventfd")
	}
	f := os.NewFile(uintptr(fd), "eventfd")
	stop := context.AfterFunc(ctx, func() { _, _ = f.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) })
	return &waker{fd: fd, w: f, stop: stop}, nil
}

func (w *waker) close() {
	if w.w != nil {
		w.stop()
		_ = w.w.Close()
	}
}
