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

// drain is how long output is still read after the command's own process has
// ended, when a background child holds the pipes open (contract, section 3).
const drain = 200 * time.Millisecond

// OutputBuffer is the size of buffer to hand to [Exec.Stream]: what a pipe holds.
const OutputBuffer = 64 << 10

// Exec is a command in a box. Stream is called once, by one goroutine; the
// other methods may be called at the same time. Close ends the use of the Exec.
type Exec struct {
	p      *Process
	errors *atomic.Int64
}

// ID returns the exec's id.
func (e *Exec) ID() string { return e.p.Record.ID }

// Record returns the exec's record from when it started; see [api.Exec.Ended].
func (e *Exec) Record() api.Exec { return e.p.Record }

// Output returns the ends of the command's pipes, which don't block, to a reader
// that does without Stream; stderr is nil with a terminal, which is stdout.
func (e *Exec) Output() (stdout, stderr *os.File) { return e.p.Stdout, e.p.Stderr }

// ExitFD returns a descriptor that becomes readable when Exit can be called.
func (e *Exec) ExitFD() int { return e.p.ExitFD() }

// Exit returns the end of the command's own process. It is called once, when
// ExitFD is readable. Stream calls it itself: don't use both.
func (e *Exec) Exit() (api.ExitStatus, error) {
	status, err := e.p.Exit()
	if err == nil && (status.Reason == api.ReasonNotFound || status.Reason == api.ReasonNotExecutable) {
		e.errors.Add(1)
	}
	return status, err
}

// CloseStdin ends the command's input, also when the input was to stay open for
// later readers of the exec.
func (e *Exec) CloseStdin(ctx context.Context) error { return e.p.CloseStdin(ctx) }

// Stdin returns the command's input, which is nil unless it was asked for. With
// a terminal it is the terminal. Closing it gives the command EOF.
func (e *Exec) Stdin() *os.File { return e.p.Stdin }

// Signal sends a signal to the command's own process. Errors: InvalidState.
func (e *Exec) Signal(ctx context.Context, sig int) error { return e.p.Signal(ctx, sig) }

// Cancel ends the command's whole process tree: it sends SIGTERM, and SIGKILL
// after grace.
func (e *Exec) Cancel(ctx context.Context, grace time.Duration) error {
	return e.p.Cancel(ctx, grace)
}

// HangUp sends SIGHUP to the command's whole process tree, because its terminal
// has gone, and SIGKILL to what is left after grace. It does so also when the
// command itself has ended.
func (e *Exec) HangUp(ctx context.Context, grace time.Duration) error {
	return e.p.HangUp(ctx, grace)
}

// Resize sets the size of the terminal.
func (e *Exec) Resize(ctx context.Context, cols, rows int) error { return e.p.Resize(ctx, cols, rows) }

// Detach ends the use of the exec and keeps its output for a later
// [Box.Attach].
func (e *Exec) Detach() error { return e.p.Detach() }

// Close ends the use of the exec. The command goes on running.
func (e *Exec) Close() error { return e.p.Release() }

// Stream reads all output into buf, passes each piece to sink, and returns the
// end of the command. sink runs on the caller's goroutine and thread, and no
// output is read until it returns; p is valid until then. Stream returns early
// with the error of sink, or with that of ctx; the command then goes on and its
// output waits.
//
// Stream waits with one poll(2) on the caller's own thread and uses no other
// goroutine, so that a callback into C runs on the thread that C called from.
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

// streamer is the state of one Stream. A descriptor becomes -1 when it has
// ended.
type streamer struct {
	e              *Exec
	buf            []byte
	sink           func(bool, []byte) error
	out, err, exit int
	status         api.ExitStatus
	deadline       time.Time // until when output is read after the exit
}

// reading tells whether there is something left to wait for.
func (s *streamer) reading() bool {
	if s.exit >= 0 {
		return true
	}
	return (s.out >= 0 || s.err >= 0) && time.Now().Before(s.deadline)
}

// step waits once and reads what has arrived. poll(2) ignores descriptors of
// -1.
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

// timeout returns how long poll may wait, in milliseconds; -1 means forever.
func (s *streamer) timeout() int {
	if s.exit >= 0 {
		return -1
	}
	return int(time.Until(s.deadline).Milliseconds()) + 1
}

func (s *streamer) read(fd *int, stderr bool) error {
	n, err := unix.Read(*fd, s.buf)
	for tty := s.e.p.Stderr == nil; tty && n > 0 && n < len(s.buf) && readable(*fd); {
		// A terminal delivers its output in many small pieces, so they are joined.
		more, _ := unix.Read(*fd, s.buf[n:]) // a failure comes again at the next read
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
	case err == nil, errors.Is(err, unix.EIO): // EIO: nothing has the terminal open any more
		*fd = -1
		return nil
	}
	return fault.Wrap(fault.Internal, err, "read output")
}

// readable tells whether a read would return at once. O_NONBLOCK can't be used
// for that: the box's init shares the flag, and may be hostile.
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

// waker makes the end of a context visible to poll(2).
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
