package core

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/fault"
)

// drain is how long a [Reader] waits for output after the command's own process
// has ended, when a background child holds the pipes open (contract, section 3).
const drain = 200 * time.Millisecond

// Pieces is output that is read piece by piece: a [Reader], or one like it.
type Pieces interface {
	// Read waits for output and reads a piece of it into buf. It returns io.EOF
	// when the command has ended and its output has been read.
	Read(buf []byte) (n int, stderr bool, err error)
	// Status returns the end of the command after io.EOF.
	Status() api.ExitStatus
}

// Pass reads all of r into buf, passes each piece to sink, and returns the end of
// the command; see [Exec.Stream].
func Pass(r Pieces, buf []byte, sink func(stderr bool, p []byte) error) (api.ExitStatus, error) {
	for {
		n, stderr, err := r.Read(buf)
		switch {
		case errors.Is(err, io.EOF):
			return r.Status(), nil
		case err != nil:
			return api.ExitStatus{}, err
		}
		if err := sink(stderr, buf[:n]); err != nil {
			return api.ExitStatus{}, err
		}
	}
}

// Reader reads the output of an [Exec] piece by piece. One goroutine uses it.
//
// It waits with one poll(2) on the caller's own thread and uses no other
// goroutine, so that a caller in C gets its output on the thread that it called
// from.
type Reader struct {
	ctx  context.Context
	e    *Exec
	wake *waker
	// fds holds stdout, stderr, the exit and the waker, in this order. Events
	// that poll reported stay in Revents until they are handled. A descriptor
	// becomes -1, which poll ignores, when it has ended.
	fds      [4]unix.PollFd
	left     [2]int // how many bytes of stdout and of stderr are still read
	carried  [2]int // how many were read, until the pipe is widened
	status   api.ExitStatus
	deadline time.Time // until when output is waited for after the exit
}

// The places in Reader.fds.
const (
	fdStdout = iota
	fdStderr
	fdExit
	fdWake
)

// Reader returns a reader of the command's output, which its owner closes. The
// end of ctx ends a Read. Errors: ResourceExhausted.
func (e *Exec) Reader(ctx context.Context) (*Reader, error) {
	wake, err := newWaker(ctx)
	if err != nil {
		return nil, err
	}
	r := &Reader{ctx: ctx, e: e, wake: wake, left: [2]int{math.MaxInt, math.MaxInt}}
	for i, fd := range []int{fdOf(e.p.Stdout), fdOf(e.p.Stderr), e.ExitFD(), wake.fd} {
		r.fds[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	return r, nil
}

// Read waits for output and reads a piece of it into buf. It returns io.EOF when
// the command has ended and its output has been read; Status then has the end.
// Errors: the reason for which the context ended, Engine (init broke its
// protocol), Internal.
func (r *Reader) Read(buf []byte) (n int, stderr bool, err error) {
	if len(buf) == 0 {
		return 0, false, nil
	}
	for r.reading() {
		if err := r.ctx.Err(); err != nil {
			return 0, false, fault.Of(err)
		}
		for i := fdStdout; i <= fdStderr; i++ {
			if !r.take(i) {
				continue
			}
			if n, err := r.read(i, buf); n > 0 || err != nil {
				return n, i == fdStderr, err
			}
		}
		switch {
		case r.take(fdExit):
			err = r.ended()
		case r.reading(): // no longer, if the last stream has just ended
			err = r.wait()
		}
		if err != nil {
			return 0, false, err
		}
	}
	return 0, false, io.EOF
}

// Status returns the end of the command after Read has returned io.EOF.
func (r *Reader) Status() api.ExitStatus { return r.status }

// Close ends the use of the reader. It does not end the use of the exec.
func (r *Reader) Close() { r.wake.close() }

// reading tells whether there is something left to wait for.
func (r *Reader) reading() bool {
	return r.fds[fdExit].Fd >= 0 || r.fds[fdStdout].Fd >= 0 || r.fds[fdStderr].Fd >= 0
}

// take reports whether poll found something for a descriptor, and notes that it
// is being handled.
func (r *Reader) take(i int) bool {
	found := r.fds[i].Fd >= 0 && r.fds[i].Revents != 0
	r.fds[i].Revents = 0
	return found
}

// wait waits until there is something to read, the command has ended, or output
// has been waited for long enough after that.
func (r *Reader) wait() error {
	timeout := -1
	if r.fds[fdExit].Fd < 0 {
		timeout = max(0, int(time.Until(r.deadline).Milliseconds())+1)
	}
	n, err := unix.Poll(r.fds[:], timeout)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return fault.Wrap(fault.Internal, err, "wait for output")
	case r.fds[fdExit].Fd < 0 && (n == 0 || time.Now().After(r.deadline)):
		return r.expire()
	}
	return nil
}

// expire bounds what is read of each stream by what it holds now. Without the
// bound, a background child that writes on would be read for ever; and if
// reading ended at the deadline, a slow caller would lose what waits.
func (r *Reader) expire() error {
	for i := range r.left {
		if r.fds[i].Fd < 0 || r.left[i] != math.MaxInt {
			continue
		}
		n, err := unix.IoctlGetInt(int(r.fds[i].Fd), unix.TIOCINQ)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "ask how much output waits")
		}
		if r.left[i] = n; n == 0 {
			r.fds[i].Fd = -1
		}
	}
	return nil
}

// read reads a piece of a stream. It returns 0 when there is nothing to read, or
// nothing any more.
func (r *Reader) read(i int, buf []byte) (int, error) {
	buf = buf[:min(len(buf), r.left[i])]
	n, err := ReadReady(int(r.fds[i].Fd), buf)
	switch {
	case n > 0:
		r.e.p.Streams.Output.Add(int64(n))
		r.widen(i, n)
		if r.left[i] != math.MaxInt {
			r.left[i] -= n
		}
		if r.left[i] == 0 {
			r.fds[i].Fd = -1
		}
		return n, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, nil
	case err == nil, errors.Is(err, unix.EIO): // EIO: nothing has the terminal open any more
		r.fds[i].Fd = -1
		return 0, nil
	}
	return 0, fault.Wrap(fault.Internal, err, "read output")
}

// A stream that has carried more than flow bytes gets a pipe of wide bytes, so
// that the command and its reader wake each other less often. A pipe of 1 MiB
// carried no more.
const (
	flow = 256 << 10
	wide = 256 << 10
)

// widen enlarges the pipe of a stream that flows, once.
func (r *Reader) widen(i, n int) {
	if r.e.p.Stderr == nil || r.carried[i] > flow {
		return
	}
	if r.carried[i] += n; r.carried[i] > flow {
		_, _ = unix.FcntlInt(uintptr(r.fds[i].Fd), unix.F_SETPIPE_SZ, wide) // if the kernel refuses, the old size will do
	}
}

// ReadReady reads from a terminal or a pipe until buf is full or there is no more
// for now: a terminal delivers its output in many small pieces, and a pipe is
// filled on while it is read. It returns what read(2) does.
func ReadReady(fd int, buf []byte) (int, error) {
	n, err := unix.Read(fd, buf)
	for n > 0 && n < len(buf) && readable(fd) {
		more, _ := unix.Read(fd, buf[n:]) // a failure comes again at the next read
		if more <= 0 {
			break
		}
		n += more
	}
	return n, err
}

// readable tells whether a read would return at once. O_NONBLOCK can't be used
// for that: the box's init shares the flag, and may be hostile.
func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLIN != 0
}

func (r *Reader) ended() error {
	status, err := r.e.Exit()
	if err != nil {
		return err
	}
	r.status, r.fds[fdExit].Fd, r.deadline = status, -1, time.Now().Add(drain)
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
