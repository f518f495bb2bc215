package guest

import (
	"context"
	"net"
	"strconv"
	"time"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// connectTimeout bounds how long a program of the box may take to accept a connection.
const connectTimeout = 10 * time.Second

// handleConnect connects to a program of the box, for an engine outside of the box's
// network. What listens on the loopback of the box is found first.
func (g *guest) handleConnect(conn *wire.Conn, f wire.Frame) error {
	var r wire.Reach
	if err := f.Decode(&r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	var d net.Dialer
	program, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)))
	for _, address := range ownAddresses() {
		if err == nil {
			break
		}
		program, err = d.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(r.Port)))
	}
	if err != nil {
		return fault.Wrap(fault.PortUnreachable, err, "nothing listens on port %d of the box", r.Port)
	}
	defer program.Close()
	socket, err := program.(*net.TCPConn).File() //nolint:forcetypeassert // it was dialled as TCP
	if err != nil {
		return err
	}
	defer socket.Close()
	if err := conn.Send(wire.TypeReached, nil, int(socket.Fd())); err != nil {
		return err
	}
	_, err = conn.Recv() // the engine sends nothing more, so this waits until it leaves
	return err
}

// ownAddresses returns the other addresses of the box.
func ownAddresses() (all []string) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && !n.IP.Equal(net.IPv4(127, 0, 0, 1)) {
			all = append(all, n.IP.String())
		}
	}
	return all
}
