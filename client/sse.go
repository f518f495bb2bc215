package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"sandbox/core/fault"
)

// maxLine bounds a line of a stream of events.
const maxLine = 4 << 20

// message is one message of a stream of Server-Sent Events.
type message struct {
	kind string
	data []byte
}

// sse reads such a stream.
type sse struct{ lines *bufio.Scanner }

func newSSE(r io.Reader) sse {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	return sse{s}
}

// next returns the next message with data. At the end of the stream, also in the
// middle of a message, it gives io.ErrUnexpectedEOF: streams of ours end with
// their last event.
func (s sse) next() (message, error) {
	var m message
	for size := 0; s.lines.Scan(); {
		line := bytes.TrimSuffix(s.lines.Bytes(), []byte("\r"))
		if size += len(line); size > maxLine {
			return message{}, errTooLong()
		}
		if len(line) == 0 {
			if m.data != nil {
				m.data = m.data[:len(m.data)-1] // the last line's end
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
	return fault.New(fault.Upstream, "an event of more than %d MiB", maxLine>>20)
}

// add takes a line with a field, or with a comment, which begins with a colon.
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
