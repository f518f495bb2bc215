package code

import (
	"bytes"
	"strconv"

	"sandbox/core/fault"
)

// MaxFrame bounds what a kernel tells at once, in bytes: a result with all its forms.
const MaxFrame = 8 << 20

const (
	nonceSize = 32
	markByte  = 0x1e
	markSize  = 1 + nonceSize
	headSize  = markSize + 4 + 1 // the mark, the size of the payload, + or .
	maxPiece  = 4096             // of a frame, with its head
	maxBody   = maxPiece - headSize
)

// splitter parts a stream of a kernel into what the code printed and the pieces of frames.
type splitter struct {
	mark []byte // what a piece begins with
	held []byte // the end of what has come, which may be the beginning of a piece
}

// sink takes what a splitter finds in a stream, in its order. The bytes are valid during
// the call.
type sink interface {
	text(p []byte)
	// piece takes a piece of a frame; last is set for the last one of the frame.
	piece(body []byte, last bool) error
}

// split takes the next bytes of the stream. Errors: Engine (the kernel broke the
// protocol).
func (s *splitter) split(p []byte, to sink) error {
	if len(s.held) > 0 {
		p = append(s.held, p...)
		s.held = nil
	}
	for len(p) > 0 {
		at := bytes.Index(p, s.mark)
		if at < 0 {
			at = len(p) - s.begins(p)
		}
		if at > 0 {
			to.text(p[:at])
			p = p[at:]
		}
		n, err := s.take(p, to)
		if err != nil {
			return err
		}
		if n == 0 { // the piece has not come to its end
			s.held = bytes.Clone(p)
			return nil
		}
		p = p[n:]
	}
	return nil
}

// begins returns how many bytes at the end of p may be the beginning of the mark.
func (s *splitter) begins(p []byte) int {
	for n := min(len(p), len(s.mark)-1); n > 0; n-- {
		if bytes.HasSuffix(p, s.mark[:n]) {
			return n
		}
	}
	return 0
}

// take takes the piece that p begins with, and returns how long it is; 0 if it is not all
// there.
func (s *splitter) take(p []byte, to sink) (int, error) {
	if len(p) < headSize {
		return 0, nil
	}
	size, err := strconv.ParseUint(string(p[markSize:markSize+4]), 16, 16)
	last := p[headSize-1] == '.'
	if err != nil || size > maxBody || !last && p[headSize-1] != '+' {
		return 0, errProtocol("the head of a piece is %.10q", p[markSize:headSize])
	}
	end := headSize + int(size)
	if len(p) < end {
		return 0, nil
	}
	return end, to.piece(p[headSize:end], last)
}

// rest returns what was held back, which is text if nothing follows.
func (s *splitter) rest() []byte {
	rest := s.held
	s.held = nil
	return rest
}

// errProtocol says what a kernel did that kernels don't do. Only code that interferes with
// its kernel brings that about.
func errProtocol(format string, args ...any) error {
	return fault.New(fault.Engine, "the process of the context does not answer as it should: "+format, args...)
}
