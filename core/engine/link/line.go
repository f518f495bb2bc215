package link

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// The host end pings when it has sent nothing for pingEvery. A line on which nothing
// came for silence is cut, and so is one that takes no bytes for as long.
const (
	pingEvery = 15 * time.Second
	silence   = 45 * time.Second
)

// errCut is why a session leaves a line that was closed meanwhile.
var errCut = errors.New("the line was cut")

// line is one connection between the two ends. It serves one session at a time.
type line struct {
	conn   net.Conn
	in     *bufio.Reader
	out    []byte        // room for a batch of frames
	work   chan struct{} // there may be something to send
	closed chan struct{}
	once   sync.Once
	until  time.Time   // the read deadline
	rest   *time.Timer // of a line that the host end keeps: it closes the line
}

func newLine(conn net.Conn) *line {
	return &line{
		conn: conn, in: bufio.NewReaderSize(conn, maxFrame), out: make([]byte, 0, maxFrame+headerSize*(2*maxStreams+2)),
		work: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

func (l *line) kick() {
	select {
	case l.work <- struct{}{}:
	default:
	}
}

func (l *line) close() {
	l.once.Do(func() {
		close(l.closed)
		_ = l.conn.Close()
	})
}

func (l *line) write(b []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	_, err := l.conn.Write(b)
	return err
}

// patient bounds the next reads to d. To spare calls it is exact to a few seconds.
func (l *line) patient(d time.Duration) error {
	const coarse = 5 * time.Second
	until := time.Now().Add(d)
	if late := until.Sub(l.until); late >= 0 && late < coarse {
		return nil
	}
	l.until = until
	return l.conn.SetReadDeadline(until)
}

// header reads the next frame's header.
func (l *line) header() (header, error) {
	if err := l.patient(silence); err != nil {
		return header{}, err
	}
	return l.next()
}

func (l *line) next() (header, error) {
	b, err := l.in.Peek(headerSize)
	if err != nil {
		return header{}, err
	}
	h, err := parseHeader(b)
	if err != nil {
		return header{}, err
	}
	_, err = l.in.Discard(headerSize)
	return h, err
}

// payload passes the n bytes of a frame to use as they arrive, straight from the buffer.
func (l *line) payload(n int, use func(p []byte)) error {
	for n > 0 {
		if _, err := l.in.Peek(1); err != nil {
			return err
		}
		p, err := l.in.Peek(min(n, l.in.Buffered()))
		if err != nil {
			return err
		}
		use(p)
		n -= len(p)
		if _, err := l.in.Discard(len(p)); err != nil {
			return err
		}
	}
	return nil
}
