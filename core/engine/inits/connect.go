package inits

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Through connects to a TCP port of a box through the box's init, for an engine whose
// host does not hold the network of the box; see [core.Ports].
func (c *Client) Through(ctx context.Context, id string, port int) (net.Conn, error) {
	if err := options.CheckPort(port); err != nil {
		return nil, err
	}
	conn, err := c.boxes.Dial(ctx, id, true)
	if err != nil {
		return nil, err
	}
	socket, err := socketOf(ctx, conn, port)
	if err != nil {
		_ = conn.Close()
		if fault.Classified(err) {
			return nil, believed(err)
		}
		return nil, c.boxes.Explain(id, errors.Join(ctx.Err(), err))
	}
	return &through{socket, conn}, nil
}

func socketOf(ctx context.Context, conn *wire.Conn, port int) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var fds []int
	if err := conn.Ask(limited, wire.TypeReach, wire.Reach{Port: port}, &fds); err != nil {
		return nil, err
	}
	if len(fds) != 1 || !is(fds[0], unix.S_IFSOCK) {
		wire.Frame{FDs: fds}.CloseFDs()
		return nil, fmt.Errorf("%w: got %d descriptors, want a socket", wire.ErrProtocol, len(fds))
	}
	f := os.NewFile(uintptr(fds[0]), "port")
	defer f.Close()
	return net.FileConn(f)
}

// through is a connection to a program in a box, which ends with that to the box's init.
type through struct {
	net.Conn
	init *wire.Conn
}

// Close closes both.
func (t *through) Close() error { return errors.Join(t.Conn.Close(), t.init.Close()) }

// CloseWrite ends what is sent, and leaves what is received.
func (t *through) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
