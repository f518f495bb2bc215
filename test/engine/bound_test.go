package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/core/options"
	"sandbox/test/boxes"
)

const (
	maxFlows = 4096  // of one box
	flood    = 20000 // more, and fewer than make a test slow
)

// A box has a bound of its own in the kernel's table of connections: at it, its
// old connections go on, and other boxes begin new ones.
func TestConnectionsBounded(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	at := net.JoinHostPort(worldIP, strconv.Itoa(port))
	greedy, other := boxSpace(t, n.mustBox(t)), boxSpace(t, n.mustBox(t))
	var before net.Conn
	greedy.do(t, func() {
		var err error
		before, err = net.DialTimeout("tcp", at, 10*time.Second)
		must(t, err)
	})
	defer before.Close()
	greedy.flood(t, worldIP)
	if got := n.connections(t); got < maxFlows/2 || got > maxFlows+10 {
		t.Errorf("the host keeps track of %d connections, want %d", got, maxFlows)
	}
	if err := say(before); err != nil {
		t.Error("a connection from before the flood: ", err)
	}
	if got, err := greedy.dial(t, "tcp", at, false); err == nil {
		t.Errorf("the box has one more connection, which answers %q", got)
	}
	if got, err := other.dial(t, "tcp", at, true); err != nil {
		t.Errorf("another box: %q, %v", got, err)
	}
}

// What the host drops is nothing that it keeps track of.
func TestDroppedIsNotTracked(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	boxSpace(t, n.mustBox(t)).flood(t, metadataIP)
	if got := n.connections(t); got > 10 {
		t.Errorf("the host keeps track of %d connections that it dropped", got)
	}
}

// flood sends a datagram to each of many ports.
func (s space) flood(t *testing.T, ip string) {
	t.Helper()
	s.do(t, func() {
		c, err := net.ListenUDP("udp4", nil)
		must(t, err)
		defer c.Close()
		for port := range flood {
			// What the host drops may come back as an error of this socket.
			_, _ = c.WriteToUDP([]byte("x"), &net.UDPAddr{IP: net.ParseIP(ip), Port: port + 1})
		}
	})
}

// connections is how many the host keeps track of.
func (n *network) connections(t *testing.T) (count int) {
	t.Helper()
	n.host.do(t, func() {
		text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
		must(t, err)
		count, err = strconv.Atoi(string(bytes.TrimSpace(text)))
		must(t, err)
	})
	return count
}

// say wants an answer over a connection.
func say(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 64))
	return err
}

// A shim that finds the table and the boxes of an earlier version brings both up
// to its own, and the boxes' ports stay published.
func TestEarlierTable(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	n.host.listen(t, "", port)
	rec := n.mustBox(t, options.Port{GuestPort: 7000, Protocol: options.ProtocolTCP})
	box := boxSpace(t, rec)
	box.listen(t, "", 7000)
	pid := boxes.ShimPID(t, n.home)
	must(t, unix.Kill(pid, unix.SIGKILL))
	awaitEnd(t, pid)
	n.host.do(t, func() {
		makeEarlier(t)
		must(t, netlink.LinkSetARPOn(boxEnd(t)))
	})
	if _, err := box.dial(t, "tcp", net.JoinHostPort(hostIP, strconv.Itoa(port)), true); err != nil {
		t.Fatal("the table without rules must let the box through: ", err)
	}
	n.host.do(t, func() { // starts the next shim
		_, err := n.engine.Get(t.Context(), rec.ID)
		must(t, err)
	})
	n.mustBox(t)
	if got, err := box.dial(t, "tcp", net.JoinHostPort(hostIP, strconv.Itoa(port)), false); err == nil {
		t.Errorf("the box reaches the host: %q", got)
	}
	if got, err := n.host.dial(t, "tcp", fmt.Sprintf("127.0.0.1:%d", rec.Options.Ports[0].HostPort), true); err != nil {
		t.Errorf("the box's port: %q, %v", got, err)
	}
	box.flood(t, worldIP)
	if got := n.connections(t); got < maxFlows/2 || got > maxFlows+10 {
		t.Errorf("the host keeps track of %d connections, want %d", got, maxFlows)
	}
	n.host.do(t, func() {
		all, err := netlink.LinkList()
		must(t, err)
		for _, l := range all {
			if l.Attrs().ParentIndex != 0 && l.Attrs().Name != "wan" && l.Attrs().RawFlags&unix.IFF_NOARP == 0 {
				t.Errorf("%s hears ARP", l.Attrs().Name)
			}
		}
	})
}

// makeEarlier leaves of the table what the first version had, without its rules.
func makeEarlier(t *testing.T) {
	t.Helper()
	c, err := nftables.New()
	must(t, err)
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	must(t, err)
	table := &nftables.Table{Name: "sandbox", Family: nftables.TableFamilyINet}
	c.FlushTable(table)
	for _, chain := range chains {
		if chain.Hooknum == nil {
			c.DelChain(chain)
		}
	}
	for _, name := range []string{"flows", "full", "hops", "hops6", "asking"} {
		c.DelSet(&nftables.Set{Table: table, Name: name})
	}
	must(t, c.Flush())
}
