package engine_test

import (
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/programs"
)

// second is another home on the same host, with a shim of its own.
func (n *network) second(t *testing.T) *network {
	t.Helper()
	other := &network{host: n.host, world: n.world, home: t.TempDir(), root: n.root}
	var err error
	other.engine, err = engine.Open(engine.Config{Home: other.home, HelperDir: programs.Dir()})
	must(t, err)
	t.Cleanup(func() { _ = other.engine.Close() })
	return other
}

// Two homes share the host: their boxes are kept apart, the ports of one are
// taken for the other, and what both have changed is put back by the last.
func TestTwoHomes(t *testing.T) {
	t.Parallel()
	one := newNetwork(t)
	two := one.second(t)
	port := options.Port{HostPort: 18100, GuestPort: 7000, Protocol: options.ProtocolTCP}
	first, second := one.mustBox(t, port), two.mustBox(t)
	if _, err := two.box(t, port); err == nil {
		t.Error("two boxes have one port")
	}
	a, b := boxSpace(t, first), boxSpace(t, second)
	a.listen(t, "", 7000)
	if from, to := b.ownIP(t), a.ownIP(t); from == to {
		t.Errorf("both have the address %s", to)
	} else if got, err := b.dial(t, "tcp", to+":7000", false); err == nil {
		t.Errorf("a box of one home reaches one of the other: %q", got)
	}
	two.remove(t, second.ID)
	pid := boxes.ShimPID(t, two.home)
	must(t, two.engine.Close())
	awaitEnd(t, pid)
	if got, err := one.host.dial(t, "tcp", "127.0.0.1:18100", true); err != nil {
		t.Errorf("after the other home's end: %q, %v", got, err)
	}
	one.host.do(t, func() {
		if v, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward"); err != nil || string(v) != "1\n" {
			t.Errorf("a home that ended took forwarding with it: %q, %v", v, err)
		}
	})
	one.remove(t, first.ID)
	one.gone(t)
}

// Shims that leave together leave nothing, whichever is the last.
func TestShimsLeaveTogether(t *testing.T) {
	t.Parallel()
	one := newNetwork(t)
	all := []*network{one, one.second(t), one.second(t)}
	var pids []int
	for _, n := range all {
		n.remove(t, n.mustBox(t).ID)
		pids = append(pids, boxes.ShimPID(t, n.home))
	}
	for _, n := range all {
		must(t, n.engine.Close())
	}
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
	one.asBefore(t)
}

// The counters are of the box's own interface.
func TestTraffic(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	rec := n.mustBox(t)
	usage := func() *core.Traffic {
		u, err := n.engine.Usage(t.Context(), rec.ID)
		must(t, err)
		return u.Network
	}
	before := usage()
	address := net.JoinHostPort(worldIP, strconv.Itoa(port))
	if _, err := boxSpace(t, rec).dial(t, "udp", address, true); err != nil { // 6 bytes there, 12 back
		t.Fatal(err)
	}
	after := usage()
	const headers = 14 + 20 + 8 // Ethernet, IPv4, UDP
	if before == nil || after == nil || after.Sent-before.Sent < headers+6 || after.Received-before.Received < headers+int64(len(hostIP)) {
		t.Errorf("%+v, then %+v", before, after)
	}
	if _, err := n.engine.Stop(t.Context(), rec.ID, time.Second); err != nil {
		t.Error(err)
	}
	if u := usage(); u != nil {
		t.Errorf("a stopped box has %+v", u)
	}
	none, err := boxWith(t, n.engine, n.root, func(o *options.Box) { o.Network = options.NetworkNone })
	must(t, err)
	if u, err := n.engine.Usage(t.Context(), none); err != nil || u.Network == nil || *u.Network != (core.Traffic{}) {
		t.Errorf("a box without a network has %+v, %v", u.Network, err)
	}
}
