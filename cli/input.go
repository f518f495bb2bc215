package cli

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/backend"
)

// endOfInput ends the input on a terminal: the first control-D sends what is left
// of a line, the second one is the end.
const endOfInput = "\x04\x04"

// Why a waitableFile gives no more, besides its end.
var (
	errStopped = errors.New("the reading was stopped")
	errHungUp  = errors.New("the terminal has gone")
)

// feed copies in to a command's input, and closes the input at the end of in. A
// terminal gets endOfInput instead and stays open. stop ends the copying, which is no
// end of in; with leave, the loss of our terminal is none either. If in is
// a file or a terminal, no byte is read from it after stop; with any other reader
// the goroutine lives until its Read returns.
func feed(in io.Reader, to io.WriteCloser, tty, leave bool) (stop func()) {
	finish := to.Close
	if tty {
		finish = func() error { _, err := io.WriteString(to, endOfInput); return err }
	}
	stop = func() {}
	if f, ok := in.(*os.File); ok {
		if w, err := waitable(f); err == nil {
			in, stop = w, w.stop
		}
	}
	go func() {
		_, err := io.Copy(writerOnly{to}, in)
		switch {
		case errors.Is(err, backend.ErrDetached), errors.Is(err, errStopped), leave && errors.Is(err, errHungUp):
			return // the command goes on, or has ended
		}
		_ = finish() // another failure means that the command has closed its input, as it may
	}()
	return stop
}

// writerOnly hides the writer's ReadFrom from io.Copy, which would go on reading
// after stop.
type writerOnly struct{ io.Writer }

// waitableFile is a file whose Read can be ended while it waits: it reads only
// when poll(2) says that there is something to read.
type waitableFile struct {
	fd         int
	terminal   bool
	wait, wake *os.File // ends of a pipe: closing wake ends the wait
}

func waitable(f *os.File) (*waitableFile, error) {
	wait, wake, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &waitableFile{fd: int(f.Fd()), terminal: asTerminal(f) != nil, wait: wait, wake: wake}, nil
}

// Read returns io.EOF at the end of the file, errStopped after stop, and errHungUp when
// the terminal has gone.
func (w *waitableFile) Read(p []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(w.wait.Fd())}}
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || fds[1].Revents != 0 {
			_ = w.wait.Close()
		}
		switch {
		case err != nil:
			return 0, io.EOF
		case fds[1].Revents != 0:
			return 0, errStopped
		}
		n, err := unix.Read(w.fd, p)
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case w.terminal && (errors.Is(err, unix.EIO) || hungUp(w.fd)):
			return 0, errHungUp
		}
		return 0, io.EOF
	}
}

// hungUp tells whether a terminal has gone. Reading from it gives no more then, as it
// does where the user types control-D.
func hungUp(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&unix.POLLHUP != 0
}

func (w *waitableFile) stop() { _ = w.wake.Close() }
