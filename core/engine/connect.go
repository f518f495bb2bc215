package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/process"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// connectTimeout bounds how long a program in a box may take to accept a connection.
const connectTimeout = 10 * time.Second

// Connect connects to a port of a box; see [core.Ports]. The shim makes the sockets in
// the box's network, so that no descriptor comes from the box.
func (c *Client) Connect(ctx context.Context, id string, port int) (net.Conn, error) {
	if err := options.CheckPort(port); err != nil {
		return nil, err
	}
	b, err := c.get(id)
	if err != nil {
		return nil, err
	}
	if b.Status != api.Running {
		return nil, b.NotRunning()
	}
	init, err := process.Open(b.Init)
	if err != nil {
		return nil, c.Explain(id, err)
	}
	conn, err := c.connect(ctx, id, port)
	if err != nil {
		_ = init.Close()
		return nil, err
	}
	go func() {
		_ = init.Wait()
		_ = conn.Close()
	}()
	return &connection{conn, init}, nil
}

// connection is a connection to a program in a box. It is closed when the box's init
// ends, because it keeps the box's network in the kernel.
type connection struct {
	*net.TCPConn
	init *process.Handle
}

// Close closes the connection.
func (c *connection) Close() error {
	_ = c.init.Close() // ends the wait for init
	return c.TCPConn.Close()
}

// connect connects sockets of a box to its port in one way after the other.
func (c *Client) connect(ctx context.Context, id string, port int) (*net.TCPConn, error) {
	var fds []int
	if err := c.shim.ask(ctx, wire.TypeSockets, wire.BoxRequest{ID: id}, &fds); err != nil {
		return nil, err
	}
	var files [2]*os.File // of IPv4 and IPv6
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "port")
		defer f.Close()
		if i < len(files) {
			files[i] = f
		}
	}
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	f, err := dialFirst(limited, files[0], files[1], port)
	switch {
	case ctx.Err() != nil:
		return nil, fault.Of(fmt.Errorf("connect to port %d of box %s: %w", port, id, ctx.Err()))
	case limited.Err() != nil && err != nil:
		return nil, fault.New(fault.PortUnreachable, "what listens on port %d of box %s accepts no connection", port, id)
	case err != nil:
		return nil, fault.Wrap(fault.PortUnreachable, err, "nothing listens on port %d of box %s", port, id)
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fault.Wrap(fault.Engine, err, "use the connection to port %d of box %s", port, id)
	}
	return conn.(*net.TCPConn), nil //nolint:forcetypeassert // the sockets are the shim's, of TCP
}

// dialFirst connects to 127.0.0.1, to ::1 or to the box's own address, whichever
// answers first, and returns the socket that is connected. Sockets that are nil are
// left out.
func dialFirst(ctx context.Context, v4, v6 *os.File, port int) (*os.File, error) {
	refused := dial(ctx, v4, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if refused == nil {
		return v4, nil
	}
	if dial(ctx, v6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}) == nil {
		return v6, nil
	}
	if own, ok := ownAddress(v4); ok && dial(ctx, v4, &unix.SockaddrInet4{Port: port, Addr: own}) == nil {
		return v4, nil
	}
	return nil, cmp.Or(ctx.Err(), refused)
}

// errNoSocket means that the kernel has no sockets of a family.
var errNoSocket = errors.New("the box's network has no such socket")

// dial connects a socket. It waits in Go's poller, until ctx ends.
func dial(ctx context.Context, socket *os.File, to unix.Sockaddr) error {
	if socket == nil {
		return errNoSocket
	}
	rc, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	var failed error
	err = rc.Write(func(fd uintptr) bool {
		// The kernel answers a second call with how the first one goes. After a
		// failure the socket may try again.
		if failed = unix.Connect(int(fd), to); errors.Is(failed, unix.EISCONN) {
			failed = nil
		}
		return !errors.Is(failed, unix.EINPROGRESS) && !errors.Is(failed, unix.EALREADY)
	})
	return cmp.Or(err, failed)
}

// ownAddress returns the address of the box in whose network a socket is. A box
// without a network has none.
func ownAddress(socket *os.File) (address [4]byte, ok bool) {
	request, err := unix.NewIfreq(boxInterface)
	if err != nil || socket == nil {
		return address, false
	}
	rc, err := socket.SyscallConn()
	if err != nil {
		return address, false
	}
	err = rc.Control(func(fd uintptr) {
		if unix.IoctlIfreq(int(fd), unix.SIOCGIFADDR, request) == nil {
			own, err := request.Inet4Addr()
			ok = err == nil && copy(address[:], own) == len(address)
		}
	})
	return address, ok && err == nil
}
