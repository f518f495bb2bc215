package network

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// surveyed is what survey finds out about the host, with which the network of
// boxes has to fit in.
type surveyed struct {
	pool   netip.Prefix
	pool6  *netip.Prefix // nil without a default route over IPv6
	mtu    int
	uplink string // the interface of the default route over IPv6
}

func (s surveyed) acceptRA() string { return "net/ipv6/conf/" + s.uplink + "/accept_ra" }

// ethernet is the MTU in bytes where the host has no default route.
const ethernet = 1500

// survey chooses the pools and the MTU by the routes in all of the host's routing
// tables.
func survey(h *netlink.Handle) (surveyed, error) {
	v4, err := routesOf(h, netlink.FAMILY_V4)
	if err != nil {
		return surveyed{}, err
	}
	v6, err := routesOf(h, netlink.FAMILY_V6)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EOPNOTSUPP) {
		return surveyed{}, err
	}
	var s surveyed
	if s.pool, err = freePool(destinations(v4)); err != nil {
		return s, err
	}
	if link := uplink(h, v6); link != nil {
		s.pool6, s.uplink, s.mtu = &pool6, link.Attrs().Name, link.Attrs().MTU
	}
	if link := uplink(h, v4); link != nil {
		s.mtu = link.Attrs().MTU
	}
	s.mtu = cmp.Or(s.mtu, ethernet)
	return s, nil
}

// routesOf returns the routes of a family in all routing tables.
func routesOf(h *netlink.Handle, family int) ([]netlink.Route, error) {
	every := &netlink.Route{Table: unix.RT_TABLE_UNSPEC}
	routes, err := whole(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(family, every, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list the routes: %w", err)
	}
	return routes, nil
}

func destinations(routes []netlink.Route) []netip.Prefix {
	var all []netip.Prefix
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		if a, ok := netip.AddrFromSlice(r.Dst.IP); ok {
			bits, _ := r.Dst.Mask.Size()
			all = append(all, netip.PrefixFrom(a.Unmap(), bits))
		}
	}
	return all
}

// freePool returns the first pool that overlaps with no route but the default one.
func freePool(taken []netip.Prefix) (netip.Prefix, error) {
	for i := firstPool; i <= lastPool; i++ {
		pool := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), poolBits)
		free := true
		for _, t := range taken {
			free = free && (t.Bits() == 0 || !t.Overlaps(pool))
		}
		if free {
			return pool, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("the host's routes leave no /%d free from 10.%d to 10.%d for the addresses of boxes", poolBits, firstPool, lastPool)
}

// uplink returns the interface of the default route, or nil if there is none.
func uplink(h *netlink.Handle, routes []netlink.Route) netlink.Link {
	for _, r := range routes {
		whole := r.Dst == nil
		if r.Dst != nil {
			bits, _ := r.Dst.Mask.Size()
			whole = bits == 0
		}
		if !whole || r.Type != unix.RTN_UNICAST || r.Table != unix.RT_TABLE_MAIN {
			continue
		}
		index := r.LinkIndex
		if index == 0 && len(r.MultiPath) > 0 {
			index = r.MultiPath[0].LinkIndex
		}
		if link, err := h.LinkByIndex(index); err == nil {
			return link
		}
	}
	return nil
}
