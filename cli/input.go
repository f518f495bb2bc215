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

// feed copies in to a command's input, and closes the input at the end of in. A
// terminal gets endOfInput instead and stays open. stop ends the copying. If in is
// a file or a terminal, no byte is read from it after stop; with any other reader
// the goroutine lives until its Read returns.
func feed(in io.Reader, to io.WriteCloser, tty bool) (stop func()) {
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
		// Another failure means that the command has closed its input, as it may.
		if _, err := io.Copy(writerOnly{to}, in); !errors.Is(err, backend.ErrDetached) {
			_ = finish()
		}
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
	wait, wake *os.File // ends of a pipe: closing wake ends the wait
}

func waitable(f *os.File) (*waitableFile, error) {
	wait, wake, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &waitableFile{fd: int(f.Fd()), wait: wait, wake: wake}, nil
}

// Read returns io.EOF at the end of the file and after stop.
func (w *waitableFile) Read(p []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(w.wait.Fd())}}
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || fds[1].Revents != 0 {
			_ = w.wait.Close()
			return 0, io.EOF
		}
		n, err := unix.Read(w.fd, p)
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		}
		return 0, io.EOF // EIO: the terminal has gone
	}
}

func (w *waitableFile) stop() { _ = w.wake.Close() }
