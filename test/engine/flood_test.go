package engine_test

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// invented is how many senders a test makes up. Fewer would do to be seen, and
// 1,024 fill the kernel's table for all network namespaces.
const invented = 200

// A box that asks for hardware addresses, and tells of some, in the names of
// many teaches its host nothing, and so leaves the host's tables as they are.
// The frames are sent from outside the box's system call filter, which refuses
// the socket.
func TestHostLearnsNothing(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	rec := n.mustBox(t)
	box := boxSpace(t, rec)
	own, own6 := box.ownAddresses(t)
	box.do(t, func() {
		send := frames(t)
		for i := range invented {
			for _, frame := range arp(i, own) {
				send(unix.ETH_P_ARP, frame)
			}
			for _, packet := range discovery(i, own6) {
				send(unix.ETH_P_IPV6, packet)
			}
		}
	})
	for _, address := range []string{worldIP, worldIP6} { // the link does its work, and all before has been heard
		if got, err := box.dial(t, "tcp", net.JoinHostPort(address, strconv.Itoa(port)), true); err != nil {
			t.Errorf("the box does not reach %s: %q, %v", address, got, err)
		}
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		if learnt := n.learnt(t, family, own, own6); len(learnt) > 0 {
			t.Errorf("the host has learnt %d neighbours, as %s", len(learnt), learnt[0].IP)
		}
	}
	out, status := boxes.Output(t, n.engine, rec.ID, options.Exec{Cmd: []string{"ping", "-c", "1", "-W", "2", worldIP}})
	if status.Status != api.ExecSucceeded {
		t.Errorf("ping ended %+v: %s", status, out)
	}
}

// learnt are the host's neighbours behind its only box but the known ones, and
// those for several at once, which are the host's own doing.
func (n *network) learnt(t *testing.T, family int, known ...net.IP) (found []netlink.Neigh) {
	t.Helper()
	n.host.do(t, func() {
		all, err := netlink.NeighList(boxEnd(t).Attrs().Index, family)
		must(t, err)
		for _, neighbour := range all {
			if !neighbour.IP.IsMulticast() && !neighbour.IP.Equal(known[0]) && !neighbour.IP.Equal(known[1]) {
				found = append(found, neighbour)
			}
		}
	})
	return found
}

// boxEnd is the end of its only box that a host has. It is called in the host's namespace.
func boxEnd(t *testing.T) netlink.Link {
	t.Helper()
	all, err := netlink.LinkList()
	must(t, err)
	i := slices.IndexFunc(all, func(l netlink.Link) bool { return strings.HasPrefix(l.Attrs().Name, "sbx") })
	if i < 0 {
		must(t, errors.New("the host has no box"))
	}
	return all[i]
}

// ownAddresses are those that a box was given, of both families.
func (s space) ownAddresses(t *testing.T) (four, six net.IP) {
	t.Helper()
	s.do(t, func() {
		link, err := netlink.LinkByName("eth0")
		must(t, err)
		all, err := netlink.AddrList(link, netlink.FAMILY_ALL)
		must(t, err)
		for _, a := range all {
			switch {
			case a.IP.To4() != nil:
				four = a.IP
			case a.IP.IsGlobalUnicast():
				six = a.IP
			}
		}
	})
	return four.To4(), six.To16()
}

// frames returns what sends over the box's link to its host.
func frames(t *testing.T) func(protocol uint16, payload []byte) {
	t.Helper()
	link, err := netlink.LinkByName("eth0")
	must(t, err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	to := &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: 6, Addr: [8]byte{2, 's', 'b', 'x', 0, 1}} // the host's
	return func(protocol uint16, payload []byte) {
		to.Protocol = protocol<<8 | protocol>>8 // as on the link
		must(t, unix.Sendto(fd, payload, 0, to))
	}
}

// A box that sends to many addresses on a link of its host makes the host ask
// for few of them, and reaches others as before.
func TestScanBounded(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	box, other := boxSpace(t, n.mustBox(t)), boxSpace(t, n.mustBox(t))
	n.host.do(t, func() { // more addresses than fit into a link of 256
		link, err := netlink.LinkByName("wan")
		must(t, err)
		_, far, err := net.ParseCIDR("203.0.112.0/22")
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: far, Scope: netlink.SCOPE_LINK}))
	})
	box.do(t, func() {
		c, err := net.ListenUDP("udp", nil)
		must(t, err)
		defer c.Close()
		for i := range scanned {
			for _, to := range []net.IP{net.IPv4(203, 0, byte(112+i>>8), byte(i)), {0x20, 1, 0xd, 0xb8, 14: byte(1 + i>>8), 15: byte(i)}} {
				// The host may refuse what it finds nobody for.
				_, _ = c.WriteToUDP([]byte("x"), &net.UDPAddr{IP: to, Port: 9})
			}
		}
	})
	if got := n.neighbours(t); got > scanned/2 {
		t.Errorf("the host has asked for %d of the %d addresses to which a box has sent", got, 2*scanned)
	}
	for _, address := range []string{worldIP, worldIP6} {
		if got, err := other.dial(t, "tcp", net.JoinHostPort(address, strconv.Itoa(port)), true); err != nil {
			t.Errorf("another box does not reach %s: %q, %v", address, got, err)
		}
	}
}

// scanned is to how many addresses of each family a test sends: many, and fewer
// than fill the kernel's table for all network namespaces.
const scanned = 400

// neighbours is how many entries of neighbours the host has behind its way out.
func (n *network) neighbours(t *testing.T) (count int) {
	t.Helper()
	n.host.do(t, func() {
		link, err := netlink.LinkByName("wan")
		must(t, err)
		all, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_ALL)
		must(t, err)
		count = len(all)
	})
	return count
}

// arp returns a request and an answer of the i-th invented sender to the gateway
// of the box that has the address own.
func arp(i int, own net.IP) (frames [][]byte) {
	for _, operation := range []byte{1, 2} {
		p := []byte{0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, byte(i >> 8), byte(i)}
		p = append(p, own[0], own[1], 77, byte(i))
		p = append(p, 2, 's', 'b', 'x', 0, 1)
		frames = append(frames, append(p, own[0], own[1], 0, 1))
	}
	return frames
}

// discovery returns what the i-th invented sender says of IPv6 neighbours and
// routers, and a packet that the host answers with an error.
func discovery(i int, own net.IP) [][]byte {
	sender := net.IP{0xfe, 0x80, 14: byte(i >> 8), 15: byte(i)}
	gate := append(net.IP(nil), own...)
	gate[14], gate[15] = 0, 1
	hardware := []byte{2, 0, 0, 0, byte(i >> 8), byte(i)}
	everyone := net.IP{0xff, 2, 15: 1}
	routers := net.IP{0xff, 2, 15: 2}
	far := net.ParseIP(worldIP6)
	const solicitRouter, router, solicit, neighbour, echo = 133, 134, 135, 136, 128
	return [][]byte{
		icmp6(sender, gate, 255, solicit, append(append([]byte{0, 0, 0, 0}, gate...), append([]byte{1, 1}, hardware...)...)),
		icmp6(sender, everyone, 255, neighbour, append(append([]byte{0x20, 0, 0, 0}, sender...), append([]byte{2, 1}, hardware...)...)),
		icmp6(sender, routers, 255, solicitRouter, append([]byte{0, 0, 0, 0, 1, 1}, hardware...)),
		icmp6(sender, everyone, 255, router, append([]byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, hardware...)),
		icmp6(sender, far, 1, echo, []byte{0, 1, 0, 1}),
		icmp6(sender, far, 64, echo, []byte{0, 1, 0, 1}),
	}
}

// icmp6 returns a whole packet of ICMPv6.
func icmp6(from, to net.IP, hops, kind byte, body []byte) []byte {
	payload := append([]byte{kind, 0, 0, 0}, body...)
	p := []byte{0x60, 0, 0, 0, 0, byte(len(payload)), unix.IPPROTO_ICMPV6, hops}
	p = append(append(p, from...), to...)
	sum := uint32(len(payload)) + unix.IPPROTO_ICMPV6
	for all := append(append([]byte(nil), p[8:]...), payload...); len(all) > 0; all = all[2:] {
		sum += uint32(binary.BigEndian.Uint16(all))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(payload[2:], ^uint16(sum+sum>>16)) //nolint:gosec // the sum of ones' complements
	return append(p, payload...)
}
