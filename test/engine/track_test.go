package engine_test

import (
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/core/options"
)

// When a box has gone, the host keeps track of none of its connections, and of
// those of other boxes as before.
func TestConnectionsForgotten(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	rec := n.mustBox(t, options.Port{GuestPort: 7000, Protocol: options.ProtocolTCP})
	box, other := boxSpace(t, rec), boxSpace(t, n.mustBox(t))
	box.listen(t, "", 7000)
	n.host.hold(t, "tcp", "127.0.0.1:"+strconv.Itoa(rec.Options.Ports[0].HostPort))
	for _, at := range []string{worldIP, worldIP6} {
		for _, network := range []string{"tcp", "udp"} {
			box.hold(t, network, net.JoinHostPort(at, strconv.Itoa(port)))
		}
	}
	four, six := box.ownAddresses(t)
	others4, others6 := other.ownAddresses(t)
	for _, at := range []string{worldIP, worldIP6} {
		other.hold(t, "udp", net.JoinHostPort(at, strconv.Itoa(port)))
	}
	if got := n.tracked(t, four, six); got != 5 {
		t.Fatalf("the host keeps track of %d connections of the box, want 5", got)
	}
	n.remove(t, rec.ID)
	if got := n.tracked(t, four, six); got != 0 {
		t.Errorf("the host keeps track of %d connections of a box that has gone", got)
	}
	if got := n.tracked(t, others4, others6); got != 2 {
		t.Errorf("the host keeps track of %d connections of another box, want 2", got)
	}
}

// hold opens a connection that works and that the other side closes, and closes its
// own side with the test.
func (s space) hold(t *testing.T, network, address string) {
	t.Helper()
	var c net.Conn
	s.do(t, func() {
		var err error
		c, err = net.Dial(network, address)
		must(t, err)
	})
	t.Cleanup(func() { _ = c.Close() })
	must(t, say(c))
	if tcp, ok := c.(*net.TCPConn); ok {
		_, err := io.Copy(io.Discard, tcp)
		must(t, err)
		acknowledge(t, tcp)
	}
}

// acknowledge sends at once what the kernel would send up to 40 ms later. The test's
// own socket keeps the network of a box that has gone, so that the kernel would keep
// track of this packet.
func acknowledge(t *testing.T, c *net.TCPConn) {
	t.Helper()
	rc, err := c.SyscallConn()
	must(t, err)
	must(t, rc.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) }))
	must(t, err)
}

// tracked is how many connections with one of the addresses the host keeps track
// of.
func (n *network) tracked(t *testing.T, addresses ...net.IP) (count int) {
	t.Helper()
	n.host.do(t, func() {
		for _, family := range []netlink.InetFamily{netlink.FAMILY_V4, netlink.FAMILY_V6} {
			flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
			must(t, err)
			for _, f := range flows {
				for _, a := range addresses {
					if f.Forward.SrcIP.Equal(a) || f.Reverse.SrcIP.Equal(a) {
						count++
					}
				}
			}
		}
	})
	return count
}
