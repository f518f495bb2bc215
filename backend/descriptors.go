package backend

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/client"
	"sandbox/core"
	"sandbox/core/fault"
)

// descriptors lead the streams of a server's command through pipes, because poll and
// epoll know nothing but descriptors. Each pipe has an end of the user's and one of
// ours, and a goroutine passes on what goes through. The command owns them.
type descriptors struct {
	c        *serverCommand
	theirs   [Exit + 1]*os.File // nil where the command has no such stream
	out, err *os.File           // our ends
	in       *os.File
	dropping atomic.Bool
	handing  sync.Mutex    // held while a piece goes into a pipe and is counted
	end      error         // why the output ended early; set when passed is closed
	passed   chan struct{} // closed when all output was passed on
	ends     sync.WaitGroup
}

// open makes the pipes and begins to pass on. c.reading is held, and is released at
// the end of the output. Errors: ResourceExhausted.
func open(c *serverCommand) (d *descriptors, err error) {
	d = &descriptors{c: c, passed: make(chan struct{})}
	pipe := func(r, w **os.File, wanted bool) {
		if wanted && err == nil {
			*r, *w, err = os.Pipe()
		}
	}
	pipe(&d.in, &d.theirs[Stdin], c.input)
	pipe(&d.theirs[Stdout], &d.out, true)
	pipe(&d.theirs[Stderr], &d.err, !c.tty)
	if err == nil {
		var fd int
		if fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
			d.theirs[Exit] = os.NewFile(uintptr(fd), "eventfd")
		}
	}
	if err != nil {
		d.closeFiles()
		return nil, fault.Wrap(fault.ResourceExhausted, err, "make pipes for the command's streams")
	}
	d.ends.Go(d.passOutput)
	if d.in != nil {
		d.ends.Go(d.passInput)
	}
	return d, nil
}

func (d *descriptors) fd(stream Stream) (int, error) {
	if stream < Stdin || stream > Exit {
		return descriptor(stream, nil)
	}
	return descriptor(stream, d.theirs[stream])
}

// passOutput passes output on until the command has ended or the session is closed.
// Then it says so: the pipes end, and the exit is readable.
func (d *descriptors) passOutput() {
	buf := make([]byte, core.OutputBuffer)
	for d.end == nil {
		n, stderr, err := d.c.read(context.Background(), buf, d.c.ReadAhead)
		if errors.Is(err, io.EOF) {
			break
		}
		if !errors.As(err, &client.Missed{}) { // a gap is no end; pipes have no way to tell of it
			d.end = err
		}
		d.write(stderr, buf[:n])
	}
	_ = d.out.Close()
	if d.err != nil {
		_ = d.err.Close()
	}
	if d.in != nil {
		_ = d.in.Close()
	}
	d.c.reading.Unlock()
	close(d.passed)
	d.wake()
}

// write writes output to its pipe, and waits while that is full, unless the output is
// dropped. Dropped output counts as had, but not that which is for the next client.
func (d *descriptors) write(stderr bool, p []byte) {
	d.handing.Lock()
	defer d.handing.Unlock()
	to, n := d.out, 0
	if stderr && d.err != nil {
		to = d.err
	}
	if len(p) > 0 && !d.dropping.Load() {
		n, _ = to.Write(p)
	}
	if !d.c.left.Load() {
		n = len(p)
	}
	d.c.Passed(stderr, n)
}

// drop ends a write that waits, and has all output from now on dropped.
func (d *descriptors) drop() {
	d.dropping.Store(true)
	_ = d.out.SetWriteDeadline(time.Unix(1, 0))
	if d.err != nil {
		_ = d.err.SetWriteDeadline(time.Unix(1, 0))
	}
}

// leave leaves what the user has not read to the next client. c.left is set.
func (d *descriptors) leave() {
	d.drop()
	d.handing.Lock()
	defer d.handing.Unlock()
	d.c.Passed(false, -unread(d.theirs[Stdout]))
	if d.err != nil {
		d.c.Passed(true, -unread(d.theirs[Stderr]))
	}
}

// unread returns how many bytes lie in a pipe; 0 if it was closed.
func unread(pipe *os.File) (n int) {
	_ = core.WithFD(pipe, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return n
}

// passInput passes input on until the user's end is closed. A process that the user's
// has forked may hold that end open for longer: what closeInput finds in the pipe is the
// rest.
func (d *descriptors) passInput() {
	_, err := io.Copy(d.c.Session, d.in)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = d.in.SetReadDeadline(time.Time{})
		_, err = io.CopyN(d.c.Session, d.in, int64(unread(d.in)))
	}
	if err == nil {
		_ = d.c.CloseInput() // if the session is lost, the output says so
	}
}

// read reads a piece of output at the user's ends, for one who waits on them and lets
// the library read. It returns io.EOF at the end. Errors: the reason for which the
// context ended, and that for which the output did.
func (d *descriptors) read(ctx context.Context, buf []byte) (n int, stderr bool, err error) {
	stop := context.AfterFunc(ctx, d.wake)
	defer stop()
	fds := make([]unix.PollFd, 0, Exit)
	for _, stream := range []Stream{Stdout, Stderr, Exit} {
		fd, err := d.fd(stream)
		if err != nil {
			fd = -1 // a terminal has no stderr
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	for fds[0].Fd >= 0 || fds[1].Fd >= 0 {
		wait := -1
		if d.over() { // what there is lies in the pipes, which may not end: see passInput
			wait = 0
		}
		_, err := unix.Poll(fds, wait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, false, fault.Wrap(fault.Internal, err, "wait for output")
		}
		if err := ctx.Err(); err != nil {
			return 0, false, fault.Of(err)
		}
		for i := range fds[:2] {
			if n := take(&fds[i], buf); n > 0 {
				return n, i == 1, nil
			}
		}
		if wait == 0 && err == nil {
			break
		}
	}
	<-d.passed
	if d.end != nil {
		return 0, false, d.end
	}
	return 0, false, io.EOF
}

// over tells whether all output was passed on.
func (d *descriptors) over() bool {
	select {
	case <-d.passed:
		return true
	default:
		return false
	}
}

// take reads what poll found. It returns 0 if there is nothing now; at the end of the
// stream it takes that out of what is polled.
func take(p *unix.PollFd, buf []byte) int {
	if p.Fd < 0 || p.Revents == 0 {
		return 0
	}
	n, err := unix.Read(int(p.Fd), buf)
	if n == 0 && err == nil {
		p.Fd = -1
	}
	return max(0, n)
}

// wake makes the exit readable, which ends every wait for a descriptor.
func (d *descriptors) wake() { _, _ = d.theirs[Exit].Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// closeInput closes the user's end of the input, behind what was written to it.
func (d *descriptors) closeInput() error {
	if d.theirs[Stdin] == nil {
		return nil
	}
	err := d.theirs[Stdin].Close()
	_ = d.in.SetReadDeadline(time.Unix(1, 0)) // for passInput
	return err
}

// drain drops what the user has not read, and waits for the end.
func (d *descriptors) drain(ctx context.Context) error {
	d.drop()
	select {
	case <-d.passed:
		return d.end
	case <-ctx.Done():
		return fault.Of(ctx.Err())
	}
}

// close closes all descriptors and waits for the goroutines. The session is closed.
func (d *descriptors) close() {
	d.dropping.Store(true)
	d.closeFiles()
	d.ends.Wait()
}

func (d *descriptors) closeFiles() {
	for _, f := range append(d.theirs[:], d.in, d.out, d.err) {
		if f != nil {
			_ = f.Close()
		}
	}
}
