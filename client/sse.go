package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"sandbox/core/fault"
)

// maxLine bounds a line of the stream, and a message, in bytes.
const maxLine = 16 << 20

// message is one message of a stream of Server-Sent Events.
type message struct {
	kind string
	data []byte
}

// sse reads a stream of Server-Sent Events.
type sse struct{ lines *bufio.Scanner }

func newSSE(r io.Reader) sse {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	return sse{s}
}

// next returns the next message with data. At the end of the stream it returns
// io.ErrUnexpectedEOF, even between two messages: a complete stream ends with the
// event exit, after which nobody calls next. Errors: also Upstream (too long).
func (s sse) next() (message, error) {
	var m message
	for size := 0; s.lines.Scan(); {
		line := bytes.TrimSuffix(s.lines.Bytes(), []byte("\r"))
		if size += len(line); size > maxLine {
			return message{}, errTooLong()
		}
		if len(line) == 0 {
			if m.data != nil {
				m.data = m.data[:len(m.data)-1] // the line feed of the last line
				return m, nil
			}
			m, size = message{}, 0
			continue
		}
		m.add(line)
	}
	switch err := s.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return message{}, errTooLong()
	case err != nil:
		return message{}, err
	}
	return message{}, io.ErrUnexpectedEOF
}

func errTooLong() error {
	return fault.New(fault.Upstream, "the server sent an event of more than %d MiB", maxLine>>20)
}

// add adds a line with a field to the message. A comment, which begins with a
// colon, is ignored.
func (m *message) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		m.kind = string(value)
	case "data":
		m.data = append(append(m.data, value...), '\n')
	}
}
