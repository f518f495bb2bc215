package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// Connect connects to a TCP port of a running box: to a program that listens on
// 127.0.0.1, on ::1 or on the box's own address. ctx bounds the connecting alone. The
// connection has CloseWrite too, which ends what the program reads and not what it
// sends. Its owner closes it. It fails with Unavailable where the way to the server is
// lost. Errors: BoxNotFound, InvalidState (the box is not running), InvalidArgument (no
// port from 1 to 65535), PortUnreachable (nothing listens there).
func (c *Client) Connect(ctx context.Context, box string, port int) (net.Conn, error) {
	if err := options.CheckPort(port); err != nil {
		return nil, err
	}
	path, err := c.boxPath(box, "", "ports", strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	s, err := c.session(ctx, path+":connect", nil, false)
	if err != nil {
		return nil, err
	}
	return &connection{c: c, s: s, port: port}, nil
}

// connection is a session with a port of a box, as a net.Conn.
type connection struct {
	c    *Client
	s    *Session
	port int

	reading sync.Mutex
	frame   io.Reader // the frame that is being read, or nil
	failed  error     // what Read returns from now on; nil for none

	ending sync.Once
	until  atomic.Pointer[time.Time] // when a write ends; nil for never
}

// Read reads what the program sends, up to io.EOF.
func (c *connection) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for c.failed == nil && len(p) > 0 {
		if c.frame == nil {
			c.failed = c.next()
			continue
		}
		n, err := c.frame.Read(p)
		if errors.Is(err, io.EOF) {
			c.frame, err = nil, nil
		}
		c.failed = c.lost(err)
		if n > 0 {
			return n, nil
		}
	}
	return 0, c.failed
}

// next waits for the next frame of bytes. Errors: io.EOF, and what the server tells.
func (c *connection) next() error {
	kind, r, err := c.s.ws.NextReader()
	if err != nil {
		return c.lost(err)
	}
	if kind == websocket.BinaryMessage {
		c.frame = r
		return nil
	}
	doc, err := io.ReadAll(io.LimitReader(r, maxControl))
	if err != nil {
		return c.lost(err)
	}
	var m struct {
		Type    string     `json:"type"`
		Code    fault.Kind `json:"code"`
		Message string     `json:"message"`
	}
	err = json.Unmarshal(doc, &m)
	switch {
	case err != nil:
		return fault.Wrap(fault.Upstream, err, "%s sent a message that can't be read", c.c.url)
	case m.Type == "eof":
		return io.EOF
	case m.Type == "error":
		return &fault.Error{Kind: m.Code, Message: m.Message}
	}
	return nil // it may be a type that this client does not know
}

// lost returns a failure of the way to the server as users of a net.Conn expect it.
func (c *connection) lost(err error) error {
	var late net.Error
	switch {
	case err == nil, errors.Is(err, net.ErrClosed):
		return err
	case errors.As(err, &late) && late.Timeout():
		return os.ErrDeadlineExceeded // the WebSocket's own says so no more
	}
	return fault.Wrap(fault.Unavailable, err, "the connection to port %d through %s was lost", c.port, c.c.url)
}

// Write sends bytes to the program. It returns when they are on their way.
func (c *connection) Write(p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(len(p), n+frame)]
		if err := c.send(websocket.BinaryMessage, piece); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

// CloseWrite tells the program that nothing more comes.
func (c *connection) CloseWrite() (err error) {
	c.ending.Do(func() { err = c.send(websocket.TextMessage, []byte(`{"type":"eof"}`)) })
	return err
}

func (c *connection) send(kind int, p []byte) error {
	c.s.writing.Lock()
	defer c.s.writing.Unlock()
	if until := c.until.Load(); until != nil {
		_ = c.s.ws.SetWriteDeadline(*until) // it never fails
	}
	return c.lost(c.s.ws.WriteMessage(kind, p))
}

// Close ends the connection. A read or write that waits fails.
func (c *connection) Close() error { return c.s.Close() }

// LocalAddr returns our address on the way to the server.
func (c *connection) LocalAddr() net.Addr { return c.s.ws.NetConn().LocalAddr() }

// RemoteAddr returns the server's address.
func (c *connection) RemoteAddr() net.Addr { return c.s.ws.NetConn().RemoteAddr() }

// SetDeadline is for both directions. The connection is of no use after a deadline
// that was met.
func (c *connection) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline is for reads alone, also for one that waits.
func (c *connection) SetReadDeadline(t time.Time) error { return c.s.ws.SetReadDeadline(t) }

// SetWriteDeadline is for writes alone, also for one that waits.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.s.ws.NetConn().SetWriteDeadline(t)
}
