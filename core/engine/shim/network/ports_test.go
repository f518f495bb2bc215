package network

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netns"

	"sandbox/core/options"
)

// TestUnpublish removes the entries of a box of which another shim has removed the first one,
// and given the port of the second one to another box. The rest goes all the same. It needs
// root: it makes a network namespace.
func TestUnpublish(t *testing.T) {
	t.Parallel()
	to := func(box string, hostPort int) []entry {
		return entryOf(options.Port{HostPort: hostPort, GuestPort: 80, Protocol: options.ProtocolTCP}, netip.MustParseAddr(box))
	}
	const box, other = "10.201.1.0", "10.201.1.1"
	gone, taken := to(box, 8001), to(box, 8002)
	rest, others := slices.Concat(to(box, 8003), to(box, 8004)), to(other, 8002)
	var left []entry
	onThread(t, func() error {
		ns, err := netns.New()
		if err != nil {
			return err
		}
		defer ns.Close()
		err = errors.Join(
			makeTable(nil),
			edit(slices.Concat(rest, others), (*nftables.Conn).SetAddElements),
			unpublish(slices.Concat(gone, taken, rest)),
		)
		if err != nil {
			return err
		}
		left, err = remaining(slices.Concat(gone, taken, rest, others))
		return err
	})
	if len(left) != 1 || string(left[0].elem.Val) != string(others[0].elem.Val) {
		t.Errorf("left: %+v", left)
	}
}
