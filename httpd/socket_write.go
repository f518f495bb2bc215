package httpd

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/spool"
)

// piece bounds the output in one frame. A frame begins with one byte that names
// the stream. Its buffer has a whole page before the output for that byte: the
// kernel copies to the beginning of a page several times faster than to an odd
// address.
const (
	piece = 256 << 10
	page  = 4096
)

var pieces = sync.Pool{New: func() any { b := make([]byte, page+piece); return &b }}

// copied is up to which size a piece is copied: then that is quicker than one more
// system call.
const copied = 32 << 10

// write sends a binary frame. There is no deadline: a slow client slows its
// command down.
func (c *socket) write(p []byte) error {
	c.busy.Add(1)
	defer c.busy.Add(-1)
	if c.WriteMessage(websocket.BinaryMessage, p) != nil {
		return errHungUp
	}
	return nil
}

// writeCopy sends the first n bytes behind the first page of a buffer of pieces.
func (c *socket) writeCopy(tag, buf []byte, n int64) error {
	begin := page - len(tag)
	copy(buf[begin:], tag)
	return c.write(buf[begin : page+n])
}

// writePiece sends tag and a piece of output as one binary frame. A large piece goes
// from its file to the socket without a copy, if the connection is one of the kernel's.
func (c *socket) writePiece(tag []byte, p spool.Piece) error {
	if conn, ok := c.NetConn().(syscall.Conn); ok && p.Size > copied {
		return c.sendPiece(conn, tag, p)
	}
	buf := pieces.Get().(*[]byte)
	defer pieces.Put(buf)
	if _, err := p.File.ReadAt((*buf)[page:page+p.Size], p.At); err != nil {
		return errDamaged(err)
	}
	return c.writeCopy(tag, *buf, p.Size)
}

func errDamaged(err error) error { return fault.Disk(err, "read the output of a command") }

// sendPiece writes the frame past the Conn, which has no way to send a file.
func (c *socket) sendPiece(conn syscall.Conn, tag []byte, p spool.Piece) error {
	c.busy.Add(1)
	defer c.busy.Add(-1)
	st, err := p.File.Stat()
	if err == nil && st.Size() < p.At+p.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return errDamaged(err) // while the frame has not begun
	}
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	raw, err := conn.SyscallConn()
	if err != nil {
		return errHungUp
	}
	_ = c.NetConn().SetWriteDeadline(time.Time{}) // that of the last control frame
	if writeMore(raw, append(frameHead(int64(len(tag))+p.Size), tag...)) != nil || writeFile(raw, p) != nil {
		return errHungUp
	}
	return nil
}

// frameHead returns the head of an unmasked binary frame of that many bytes (RFC
// 6455, section 5.2).
func frameHead(size int64) []byte {
	const final = 0x80
	head := []byte{final | websocket.BinaryMessage}
	switch {
	case size <= 125:
		return append(head, byte(size))
	case size <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(head, 126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(head, 127), uint64(size))
}

// writeMore writes p, and says that more follows, so that no packet goes out with the
// head of a frame alone.
func writeMore(raw syscall.RawConn, p []byte) error {
	return insist(raw, func(fd int) (left bool, err error) {
		n, err := unix.SendmsgN(fd, p, nil, nil, unix.MSG_MORE|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		p = p[max(n, 0):]
		return len(p) > 0, err
	})
}

// writeFile writes a piece of a file, which the kernel takes from its own memory.
func writeFile(raw syscall.RawConn, p spool.Piece) error {
	return insist(raw, func(fd int) (left bool, err error) {
		n, err := unix.Sendfile(fd, int(p.File.Fd()), &p.At, int(p.Size))
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		p.Size -= int64(max(n, 0))
		return p.Size > 0, err
	})
}

// insist repeats a write to a socket while something is left, and waits for room.
func insist(raw syscall.RawConn, write func(fd int) (left bool, err error)) error {
	var failed error
	wait := raw.Write(func(fd uintptr) bool {
		for left := true; left; {
			left, failed = write(int(fd))
			switch {
			case errors.Is(failed, unix.EAGAIN):
				return false
			case errors.Is(failed, unix.EINTR):
				left = true
			case failed != nil:
				return true
			}
		}
		return true
	})
	return errors.Join(wait, failed)
}

// writeControl sends a control frame between two others, if its turn comes in time.
func (c *socket) writeControl(kind int, data []byte, within time.Duration) error {
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-late.C:
		return os.ErrDeadlineExceeded
	}
	return c.WriteControl(kind, data, time.Now().Add(within))
}

// patience is how long an answer to a control frame waits for its turn. The client is
// not read meanwhile.
const patience = time.Second

// reply answers a control frame, or leaves it if the client takes nothing.
func (c *socket) reply(kind int, data []byte) { _ = c.writeControl(kind, data, patience) }

// tell sends a text frame with v as JSON.
func (c *socket) tell(v any) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "encode a frame")
	}
	c.busy.Add(1)
	defer c.busy.Add(-1)
	if c.WriteMessage(websocket.TextMessage, doc) != nil {
		return errHungUp
	}
	return nil
}
