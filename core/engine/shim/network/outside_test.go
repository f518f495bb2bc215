package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// TestWatchOwnOverflow has more routes change at once than the socket of a watch holds. The
// watch goes on and misses nothing. It needs root: it makes a network namespace.
func TestWatchOwnOverflow(t *testing.T) {
	t.Parallel()
	const burst, looks = 4000, 200 // more looks than what was read before the overflow could lead to
	var ns netns.NsHandle
	onThread(t, func() (err error) { ns, err = netns.New(); return err })
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	must(t, err)
	defer h.Close()
	lo, err := h.LinkByName("lo")
	must(t, err)
	must(t, h.LinkSetUp(lo))
	route := func(n int) (*netlink.Route, netip.Prefix) {
		to := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 32)
		return &netlink.Route{
			LinkIndex: lo.Attrs().Index, Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(32, 32)},
			Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
		}, to
	}
	enough, n := errors.New("enough"), 0
	look := func(own []netip.Prefix) error {
		if _, last := route(n); n > 0 && !slices.Contains(own, last) {
			return fmt.Errorf("%s is missing", last)
		}
		for i := 0; n == 0 && i < burst; i++ {
			other, _ := route(0)
			if err := errors.Join(h.RouteAdd(other), h.RouteDel(other)); err != nil {
				return err
			}
		}
		if n++; n == looks {
			return enough
		}
		next, _ := route(n)
		return h.RouteAdd(next)
	}
	onThread(t, func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		err := WatchOwn(t.Context(), look)
		if !errors.Is(err, enough) {
			return fmt.Errorf("after %d looks: %w", n, err)
		}
		return nil
	})
}

func TestOutermost(t *testing.T) {
	var all []netip.Prefix
	for _, p := range []string{"127.0.0.1/32", "192.0.2.2/32", "127.0.0.0/8", "10.0.0.0/24", "10.0.0.255/32", "127.255.255.255/32"} {
		all = append(all, netip.MustParsePrefix(p))
	}
	if got, want := fmt.Sprint(outermost(all)), "[127.0.0.0/8 10.0.0.0/24 192.0.2.2/32]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestIntervals wants each prefix to end where the next address is not in it: the kernel
// takes an end that is missing for the last address of all.
func TestIntervals(t *testing.T) {
	var all []netip.Prefix
	for _, p := range []string{"192.0.2.2/32", "10.0.0.0/24", "10.0.1.0/24", "255.255.255.255/32"} {
		all = append(all, netip.MustParsePrefix(p))
	}
	var got []string
	for _, e := range intervals(all) {
		got = append(got, text(e))
	}
	want := "10.0.0.0 -10.0.2.0 192.0.2.2 -192.0.2.3 255.255.255.255"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func text(e nftables.SetElement) string {
	a, _ := netip.AddrFromSlice(e.Key)
	if e.IntervalEnd {
		return "-" + a.String()
	}
	return a.String()
}
