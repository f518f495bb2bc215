// Package wire defines the messages between a host process, the shim of a home
// and the init of a box, and the connection that carries them: frames over a
// Unix stream socket, which also passes descriptors.
//
// A frame is the 4-byte big-endian length of its body, 1 byte of type, 1 byte
// with the number of descriptors that belong to it, then the body (JSON). The
// peer may be hostile, as a box is: sizes are bounded, descriptors that were not
// announced are closed, and a frame that does not parse ends the connection.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// MaxBody and MaxFDs bound a frame's body in bytes and its descriptors. A start
// request carries at most 128 KiB of command and as much of environment. Its
// answer also carries the environment of the box and of the image. JSON may
// lengthen all of it sixfold.
const (
	MaxBody = 4 << 20
	MaxFDs  = 8
)

const headerSize = 6

// ErrProtocol is in the chain of every error that invalid bytes from a peer
// caused.
var ErrProtocol = errors.New("protocol error")

// Type says what a frame's body is.
type Type byte

// Frame is one message as it was received. The receiver owns FDs.
type Frame struct {
	Type Type
	Body []byte
	FDs  []int
}

// Decode reads the body into v.
func (f Frame) Decode(v any) error {
	if err := json.Unmarshal(f.Body, v); err != nil {
		return fmt.Errorf("%w: body of frame %d: %w", ErrProtocol, f.Type, err)
	}
	return nil
}

// CloseFDs closes the frame's descriptors, except those that are -1 because
// their owner has taken them.
func (f Frame) CloseFDs() {
	for _, fd := range f.FDs {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// Conn sends and receives frames. Several goroutines may call Send at once, but
// only one may call Recv. On a socket in blocking mode the calls block their
// thread; on one in non-blocking mode they wait in Go's poller.
type Conn struct {
	f       *os.File
	timeout time.Duration
	send    sync.Mutex
	buf     []byte // received and not yet taken
	fds     []int  // received and not yet taken
}

// NewConn returns a connection on a socket's descriptor, which the connection
// owns from then on.
func NewConn(fd int, name string) *Conn { return &Conn{f: os.NewFile(uintptr(fd), name)} }

// FD returns the socket's descriptor, for polling. The connection still owns it.
func (c *Conn) FD() int { return int(c.f.Fd()) }

// Buffered tells whether received bytes are waiting for the next Recv, which may
// then return a frame without reading from the socket.
func (c *Conn) Buffered() bool { return len(c.buf) > 0 }

// Close closes the socket, and the descriptors that were received but not
// returned in a frame.
func (c *Conn) Close() error {
	for _, fd := range c.fds {
		_ = unix.Close(fd)
	}
	c.fds = nil
	return c.f.Close()
}

// Cut ends all sending and receiving, also of a call that waits. It may be
// called at any time. After Close it does nothing, even if the descriptor's
// number belongs to another file by then.
func (c *Conn) Cut() { c.shutdown(unix.SHUT_RDWR) }

// CloseRead ends all receiving, also of a call that waits. It may be called when Cut may.
func (c *Conn) CloseRead() { c.shutdown(unix.SHUT_RD) }

// CloseWrite ends all sending. It may be called when Cut may.
func (c *Conn) CloseWrite() { c.shutdown(unix.SHUT_WR) }

func (c *Conn) shutdown(how int) {
	if rc, err := c.f.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), how) })
	}
}

// SetTimeout bounds each later Send and Recv of a blocking socket to d, or to
// twice d for a frame that arrives in parts; it fails with [os.ErrDeadlineExceeded]
// then. 0 means no timeout.
func (c *Conn) SetTimeout(d time.Duration) error {
	c.timeout = d
	tv := unix.NsecToTimeval(int64(d))
	fd := int(c.f.Fd())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return err
	}
	return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
}

// Send sends one frame, with body as JSON. The caller still owns fds.
func (c *Conn) Send(t Type, body any, fds ...int) error {
	var j []byte
	if body != nil {
		var err error
		if j, err = json.Marshal(body); err != nil {
			return err
		}
	}
	return c.Forward(Frame{Type: t, Body: j, FDs: fds})
}

// Forward sends a frame as it is. The caller still owns its descriptors.
func (c *Conn) Forward(f Frame) error {
	if len(f.Body) > MaxBody {
		return fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, len(f.Body))
	}
	b := make([]byte, headerSize, headerSize+len(f.Body))
	binary.BigEndian.PutUint32(b, uint32(len(f.Body)))
	b[4], b[5] = byte(f.Type), byte(len(f.FDs))
	b = append(b, f.Body...)
	var oob []byte
	if len(f.FDs) > 0 {
		oob = unix.UnixRights(f.FDs...)
	}
	c.send.Lock()
	defer c.send.Unlock()
	return c.sendAll(b, oob)
}

func (c *Conn) sendAll(b, oob []byte) error {
	rc, err := c.f.SyscallConn()
	if err != nil {
		return err
	}
	for len(b) > 0 {
		var n int
		var failed error
		err := rc.Write(func(fd uintptr) bool {
			failed = retry(func() (err error) {
				n, err = unix.SendmsgN(int(fd), b, oob, nil, unix.MSG_NOSIGNAL)
				return err
			})
			return !c.mustWait(failed)
		})
		if err = errors.Join(err, c.late(failed)); err != nil {
			return err
		}
		b, oob = b[n:], nil
	}
	return nil
}

// Recv returns the next frame. The error is io.EOF when the peer has closed the
// connection between frames, and io.ErrUnexpectedEOF within one.
func (c *Conn) Recv() (Frame, error) {
	if err := c.fill(headerSize); err != nil {
		return Frame{}, err
	}
	size, nfds := int(binary.BigEndian.Uint32(c.buf)), int(c.buf[5])
	t := Type(c.buf[4])
	if size > MaxBody || nfds > MaxFDs {
		return Frame{}, fmt.Errorf("%w: a frame of %d bytes and %d descriptors", ErrProtocol, size, nfds)
	}
	if err := c.fill(headerSize + size); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	if nfds > len(c.fds) {
		return Frame{}, fmt.Errorf("%w: %d descriptors announced, %d came", ErrProtocol, nfds, len(c.fds))
	}
	f := Frame{Type: t, Body: append([]byte(nil), c.buf[headerSize:headerSize+size]...), FDs: c.fds[:nfds:nfds]}
	c.buf, c.fds = c.buf[headerSize+size:], c.fds[nfds:]
	return f, nil
}

// readSize is how many bytes the first recvmsg of a frame asks for. Most frames
// fit into it.
const readSize = 4096

// fill reads until n bytes are buffered. The rest of a frame is asked for
// exactly: the kernel ends a read behind a message with descriptors, but only the
// read that takes them, so that a longer one would take the next frame too.
func (c *Conn) fill(n int) error {
	for start := time.Now(); len(c.buf) < n; {
		if c.timeout > 0 && time.Since(start) > c.timeout {
			return fmt.Errorf("the connection ended inside a frame: %w", os.ErrDeadlineExceeded)
		}
		size := n - len(c.buf)
		if len(c.buf) == 0 {
			size = readSize
		}
		got, err := c.recvmsg(size)
		if err != nil {
			return err
		}
		if got == 0 && len(c.buf) == 0 {
			return io.EOF
		}
		if got == 0 {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

func (c *Conn) recvmsg(size int) (int, error) {
	rc, err := c.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	// The buffer grows only with the bytes that arrive, so a large frame that
	// is announced and never sent costs no memory.
	b := make([]byte, min(size, 64<<10))
	oob := make([]byte, unix.CmsgSpace(MaxFDs*4))
	var n, oobn, flags int
	var failed error
	err = rc.Read(func(fd uintptr) bool {
		failed = retry(func() (err error) {
			n, oobn, flags, _, err = unix.Recvmsg(int(fd), b, oob, unix.MSG_CMSG_CLOEXEC)
			return err
		})
		return !c.mustWait(failed)
	})
	if err = errors.Join(err, c.late(failed)); err != nil {
		return 0, err
	}
	c.buf = append(c.buf, b[:n]...)
	return n, c.takeRights(oob[:oobn], flags)
}

// takeRights takes the descriptors of a message. The kernel cuts them off where
// there are more than fit, and also where this process can't have so many.
func (c *Conn) takeRights(oob []byte, flags int) error {
	before := len(c.fds)
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	for _, m := range msgs {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrProtocol, err)
		}
		c.fds = append(c.fds, fds...)
	}
	cut := flags&unix.MSG_CTRUNC != 0
	if cut && len(c.fds)-before < MaxFDs {
		return fmt.Errorf("receive descriptors: %w", unix.EMFILE)
	}
	if cut || len(c.fds) > 2*MaxFDs {
		return fmt.Errorf("%w: too many descriptors", ErrProtocol)
	}
	return nil
}

// mustWait tells whether Go's poller has to wait for the socket after err. On a
// blocking socket it has not: see late.
func (c *Conn) mustWait(err error) bool {
	if !errors.Is(err, unix.EAGAIN) {
		return false
	}
	flags, err := unix.FcntlInt(c.f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_NONBLOCK != 0
}

// late names the error of a blocking socket whose timeout has passed, EAGAIN, as what
// it is: elsewhere that says that the host is short of processes.
func (c *Conn) late(err error) error {
	if errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("no answer in %s: %w", c.timeout, os.ErrDeadlineExceeded)
	}
	return err
}

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
