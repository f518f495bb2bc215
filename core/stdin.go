package core

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// Stdin is the input of a command. It counts what is written to it, for
// [Box.Metrics].
type Stdin struct {
	*os.File
	written *atomic.Int64
}

// WithFD calls do with the descriptor, which stays open until do returns: who
// takes it from Fd may find that another goroutine has closed it. Errors: do's,
// and os.ErrClosed.
func (s *Stdin) WithFD(do func(fd int) error) error { return WithFD(s.File, do) }

// WithFD does for a file what [Stdin.WithFD] does.
func WithFD(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}

// EndOfInput is the character (control-D) that ends the input on a terminal.
const EndOfInput = "\x04"

// Write writes to the command.
func (s *Stdin) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	s.written.Add(int64(n))
	return n, err
}

// WriteString writes to the command.
func (s *Stdin) WriteString(text string) (int, error) { return s.Write([]byte(text)) }

// ReadFrom writes to the command what r returns. It hides that of the file, which
// does not count.
func (s *Stdin) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{s}, r) }
