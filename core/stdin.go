package core

import (
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
