package network

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/nftables"
)

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
