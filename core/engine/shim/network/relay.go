package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"sandbox/core/options"
)

// bindOutside binds a port in the host's network namespace, which this process is not in.
// What arrives at the socket is forwarded.
func (b *Box) bindOutside(at netip.AddrPort, p options.Port) (held, int, error) {
	f, port, err := b.host.Outside.Listen(at, p.Protocol == options.ProtocolUDP)
	if err != nil {
		return held{}, 0, err
	}
	defer f.Close() // the connections have descriptors of their own
	if p.Protocol == options.ProtocolUDP {
		c, err := net.FilePacketConn(f)
		if err != nil {
			return held{}, 0, fmt.Errorf("use the socket of a port: %w", err)
		}
		packets := c.(*net.UDPConn) //nolint:forcetypeassert // it was made for UDP
		return held{Closer: packets, packets: packets, guestPort: p.GuestPort}, port, nil
	}
	c, err := net.FileListener(f)
	if err != nil {
		return held{}, 0, fmt.Errorf("use the socket of a port: %w", err)
	}
	l := c.(*net.TCPListener) //nolint:forcetypeassert // it was made for TCP
	return held{Closer: l, listener: l, guestPort: p.GuestPort}, port, nil
}

// The most senders of a Udp port that are remembered at once, and for how long after
// their last packet. The kernel remembers them for as long where its table leads packets.
const (
	maxSenders = 1024
	senderKept = 30 * time.Second
)

// relay forwards packets that arrive at a socket to a box, and what the box answers to
// whoever sent them, until the socket is closed.
func (b *Box) relay(packets *net.UDPConn, box netip.AddrPort) {
	r := relay{packets: packets, box: box, senders: map[netip.AddrPort]*net.UDPConn{}}
	defer r.close()
	buf := make([]byte, 1<<16)
	for {
		n, from, err := packets.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an error that an earlier packet caused
		}
		if to := r.sender(from); to != nil {
			_ = to.SetReadDeadline(time.Now().Add(senderKept))
			_, _ = to.Write(buf[:n]) // a packet may be lost
		}
	}
}

type relay struct {
	packets *net.UDPConn
	box     netip.AddrPort

	mu      sync.Mutex
	senders map[netip.AddrPort]*net.UDPConn // to the box, one for each sender
}

// sender returns the socket that stands for a sender, or nil if there are too many.
func (r *relay) sender(from netip.AddrPort) *net.UDPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.senders[from]; c != nil || len(r.senders) >= maxSenders {
		return c
	}
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(r.box))
	if err != nil {
		return nil
	}
	r.senders[from] = c
	_ = c.SetReadDeadline(time.Now().Add(senderKept))
	go r.answer(c, from)
	return c
}

// answer sends what the box answers to a sender, until neither has sent for a while.
func (r *relay) answer(c *net.UDPConn, to netip.AddrPort) {
	defer func() {
		r.mu.Lock()
		delete(r.senders, to)
		r.mu.Unlock()
		_ = c.Close()
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		var late net.Error
		if errors.Is(err, net.ErrClosed) || errors.As(err, &late) && late.Timeout() {
			return
		}
		if err != nil {
			continue // nothing listens in the box yet, or not any more
		}
		_ = c.SetReadDeadline(time.Now().Add(senderKept))
		_, _ = r.packets.WriteToUDPAddrPort(buf[:n], to)
	}
}

func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.senders {
		_ = c.Close()
	}
}
