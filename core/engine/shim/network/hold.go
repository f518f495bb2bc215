package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// A published port is held by a socket of the shim, so that no program on the
// host can take it, and the shim notices if one has it already. The nftables
// table leads IPv4 packets to the box before a socket sees them, including those
// from the host's loopback. IPv6 goes through the socket: the kernel sends
// nothing from ::1 to another interface, so connections to an IPv6 address
// arrive at the socket and the shim forwards them.

// held is one socket of a published port.
type held struct {
	io.Closer
	listener  *net.TCPListener // nil for Udp
	packets   *net.UDPConn     // of a Udp port that no rule of the table leads to the box
	guestPort int
}

// loopback6 is the address on which a Tcp port is published too when it is
// published on 127.0.0.1 or on all addresses.
var loopback6 = netip.IPv6Loopback()

// attempts bounds how many ports are tried to find one that is free both on IPv4
// and on ::1.
const attempts = 16

// hold binds the sockets of a port, and chooses a free port if p's is 0.
func (b *Box) hold(p options.Port) error {
	ip, err := hostIP(p)
	if err != nil {
		return fault.New(fault.InvalidArgument, "host_ip %q is not an IP address", p.HostIP)
	}
	if ip.Is6() && p.Protocol == options.ProtocolUDP {
		return fault.New(fault.Unsupported, "Udp ports are published on IPv4 addresses alone: leave host_ip out, or use 0.0.0.0")
	}
	for range attempts {
		got, port, err := b.take(ip, p)
		if err == nil {
			p.HostPort = port
			b.held, b.Ports = append(b.held, got...), append(b.Ports, p)
			return nil
		}
		if p.HostPort != 0 || !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	return unix.EADDRINUSE
}

// holdAgain binds the sockets of a port of a box that runs already.
func (b *Box) holdAgain(p options.Port) error {
	ip, err := hostIP(p)
	if err != nil {
		return err
	}
	got, _, err := b.take(ip, p)
	b.held = append(b.held, got...)
	return err
}

// take binds a port on ip. A Tcp port on an IPv4 loopback address or on all IPv4
// addresses is bound on ::1 too, unless the host has no IPv6. It returns the
// sockets and the number of the port.
func (b *Box) take(ip netip.Addr, p options.Port) ([]held, int, error) {
	first, port, err := b.bind(ip, p.HostPort, p)
	if err != nil {
		return nil, 0, err
	}
	all := []held{first}
	if p.Protocol != options.ProtocolTCP || ip.Is6() || !ip.IsLoopback() && !ip.IsUnspecified() {
		return all, port, nil
	}
	second, _, err := b.bind(loopback6, port, p)
	switch {
	case err == nil:
		return append(all, second), port, nil
	case errors.Is(err, unix.EADDRNOTAVAIL), errors.Is(err, unix.EAFNOSUPPORT):
		return all, port, nil // a host without IPv6
	}
	_ = first.Close()
	return nil, 0, err
}

func (b *Box) bind(ip netip.Addr, port int, p options.Port) (held, int, error) {
	at := netip.AddrPortFrom(ip, uint16(port)) //nolint:gosec // checked by options
	if b.host.Outside != nil {
		return b.bindOutside(at, p)
	}
	version := "4"
	if ip.Is6() {
		version = "6"
	}
	if p.Protocol == options.ProtocolUDP {
		c, err := net.ListenUDP("udp"+version, net.UDPAddrFromAddrPort(at))
		if err != nil {
			return held{}, 0, err
		}
		return held{Closer: c}, c.LocalAddr().(*net.UDPAddr).Port, nil
	}
	l, err := net.ListenTCP("tcp"+version, net.TCPAddrFromAddrPort(at))
	if err != nil {
		return held{}, 0, err
	}
	return held{Closer: l, listener: l, guestPort: p.GuestPort}, l.Addr().(*net.TCPAddr).Port, nil
}

// serve forwards the connections that arrive at the sockets until the box is
// closed. It returns at once.
func (b *Box) serve(box netip.Addr) {
	for _, h := range b.held {
		if h.listener != nil {
			go b.accept(h.listener, net.JoinHostPort(box.String(), strconv.Itoa(h.guestPort)))
		}
		if h.packets != nil {
			go b.relay(h.packets, netip.AddrPortFrom(box, uint16(h.guestPort))) //nolint:gosec // checked by options
		}
	}
}

func (b *Box) accept(l *net.TCPListener, target string) {
	for {
		conn, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptor was free, or the client reset it: the next may work
			select {
			case <-b.ctx.Done():
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		go b.forward(conn, target)
	}
}

const (
	acceptPause = 100 * time.Millisecond
	dialTimeout = 10 * time.Second
)

// forward connects to the box and copies both directions of one connection until
// they end or the box is closed.
func (b *Box) forward(outer *net.TCPConn, target string) {
	defer outer.Close()
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(b.ctx, "tcp4", target)
	if err != nil {
		return // the client sees its connection end
	}
	defer conn.Close()
	inner := conn.(*net.TCPConn)
	stop := context.AfterFunc(b.ctx, func() { _, _ = outer.Close(), inner.Close() })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(inner, outer)
	}()
	pump(outer, inner)
	<-done
}

// pump copies one direction of a connection until it ends, and closes only this
// direction; the other may go on.
func pump(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = from.CloseRead()
	}
	_ = to.CloseWrite()
}

// release closes the sockets that hold the ports, and ends all forwarding.
func (b *Box) release() {
	b.end()
	for _, h := range b.held {
		_ = h.Close()
	}
	b.held = nil
}
