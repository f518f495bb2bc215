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

// A published port is held by a socket of the shim, so that no program of
// the host takes it, and one that has it is noticed. The table leads IPv4 to
// the box before a socket sees it, from the host's loopback too. The kernel
// sends nothing from ::1 to another interface: what is for an IPv6 address
// arrives at the socket and is forwarded from there.

// held is one socket of a published port.
type held struct {
	io.Closer
	listener  *net.TCPListener // nil for Udp
	guestPort int
}

// loopback6 is published beside 127.0.0.1.
var loopback6 = netip.IPv6Loopback()

// attempts bounds the search for a port that is free on IPv4 and on ::1.
const attempts = 16

// hold takes a port, and chooses it where it is 0.
func (b *Box) hold(p options.Port) error {
	ip, err := hostIP(p)
	if err != nil {
		return fault.New(fault.InvalidArgument, "host_ip %q is no IP address", p.HostIP)
	}
	if ip.Is6() && p.Protocol == options.ProtocolUDP {
		return fault.New(fault.Unsupported, "Udp ports are published on IPv4 addresses alone: leave host_ip out, or use 0.0.0.0")
	}
	for range attempts {
		got, port, err := take(ip, p)
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

// holdAgain takes a port of a box that runs already.
func (b *Box) holdAgain(p options.Port) error {
	ip, err := hostIP(p)
	if err != nil {
		return err
	}
	got, _, err := take(ip, p)
	b.held = append(b.held, got...)
	return err
}

// take binds a port on ip, and on ::1 where that goes with it.
func take(ip netip.Addr, p options.Port) ([]held, int, error) {
	first, port, err := bind(ip, p.HostPort, p)
	if err != nil {
		return nil, 0, err
	}
	all := []held{first}
	if p.Protocol != options.ProtocolTCP || ip.Is6() || !ip.IsLoopback() && !ip.IsUnspecified() {
		return all, port, nil
	}
	second, _, err := bind(loopback6, port, p)
	switch {
	case err == nil:
		return append(all, second), port, nil
	case errors.Is(err, unix.EADDRNOTAVAIL), errors.Is(err, unix.EAFNOSUPPORT):
		return all, port, nil // a host without IPv6
	}
	_ = first.Close()
	return nil, 0, err
}

func bind(ip netip.Addr, port int, p options.Port) (held, int, error) {
	at := netip.AddrPortFrom(ip, uint16(port)) //nolint:gosec // checked by options
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
	return held{l, l, p.GuestPort}, l.Addr().(*net.TCPAddr).Port, nil
}

// serve forwards what arrives at the sockets until the box is closed.
func (b *Box) serve(box netip.Addr) {
	for _, h := range b.held {
		if h.listener != nil {
			go b.accept(h.listener, net.JoinHostPort(box.String(), strconv.Itoa(h.guestPort)))
		}
	}
}

func (b *Box) accept(l *net.TCPListener, target string) {
	for {
		conn, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, or it was reset: the next may do
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

// forward joins one connection with the box.
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

// pump copies one direction to its end; the other may go on.
func pump(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = from.CloseRead()
	}
	_ = to.CloseWrite()
}

// release lets go of the ports.
func (b *Box) release() {
	b.end()
	for _, h := range b.held {
		_ = h.Close()
	}
	b.held = nil
}
