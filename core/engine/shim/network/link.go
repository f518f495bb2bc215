package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// linkPrefix is how the name of the host's end of each pair begins. The table's
// rules recognise boxes by it.
const linkPrefix = "sbx"

// inside is the name of the box's end within the box.
const inside = "eth0"

// hostMAC and boxMAC are the hardware addresses of the two ends of a pair. They
// can be the same in every pair, because nothing else is on the link.
var (
	hostMAC = net.HardwareAddr{0x02, 's', 'b', 'x', 0, 1}
	boxMAC  = net.HardwareAddr{0x02, 's', 'b', 'x', 0, 2}
)

// maxNumber is the most boxes with a network on one host. Their numbers are below
// it.
const maxNumber = 4096

// firstAddress is the offset in a pool of the address of box number 0. The
// address with offset 1 is that of the host's end of every pair (gateway).
const firstAddress = 256

// address returns the address with offset n in a pool.
func address(pool netip.Prefix, n int) netip.Addr {
	b := pool.Addr().AsSlice()
	last := len(b) - 1
	b[last-1], b[last] = byte(n>>8), byte(n)
	a, _ := netip.AddrFromSlice(b)
	return a
}

func gateway(pool netip.Prefix) netip.Addr { return address(pool, 1) }

// numberOf returns the box's number, which is in the name of the host's end.
func numberOf(link string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(link, linkPrefix))
	if err != nil || n < 0 || n >= maxNumber {
		return 0, fmt.Errorf("%q is not an interface of a box", link)
	}
	return n, nil
}

func (s *shared) addressOf(link string) (netip.Addr, error) {
	n, err := numberOf(link)
	if err != nil {
		return netip.Addr{}, err
	}
	return address(s.Pool, firstAddress+n), nil
}

// connect makes the pair with its addresses and routes, and returns the box's
// IPv4 address. It takes the first free number from number on. Two shims never
// take the same one, because the number is in the pair's name and the kernel
// refuses a name that exists.
func (b *Box) connect(pid, number int) (netip.Addr, error) {
	h := b.host
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return netip.Addr{}, err
	}
	defer ns.Close()
	for range maxNumber {
		b.Link = linkPrefix + strconv.Itoa(number)
		err = makePair(h.routes, b.Link, ns, h.shared.MTU)
		if !errors.Is(err, unix.EEXIST) {
			break
		}
		number = (number + 1) % maxNumber
	}
	if err != nil {
		b.Link = ""
		if errors.Is(err, unix.EEXIST) {
			return netip.Addr{}, fault.New(fault.ResourceExhausted, "the host has %d boxes with a network, which is the most", maxNumber)
		}
		return netip.Addr{}, fmt.Errorf("make the veth pair: %w", err)
	}
	if err := b.configure(ns, firstAddress+number); err != nil {
		return netip.Addr{}, err
	}
	return address(h.shared.Pool, firstAddress+number), nil
}

func makePair(h *netlink.Handle, name string, ns netns.NsHandle, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = name, mtu, hostMAC
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerHardwareAddr, pair.PeerNamespace = inside, boxMAC, netlink.NsFd(ns)
	return h.LinkAdd(pair)
}

// configure sets the addresses, routes and neighbours of both ends. As the
// neighbours are set here and never asked for, nothing that the box says about
// hardware addresses changes them.
func (b *Box) configure(ns netns.NsHandle, n int) error {
	box, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("enter the box's network: %w", err)
	}
	defer box.Close()
	host := b.host.routes
	outer, err := host.LinkByName(b.Link)
	if err != nil {
		return err
	}
	b.index = outer.Attrs().Index
	inner, err := box.LinkByName(inside)
	if err != nil {
		return err
	}
	// This comes before the box can send, so that the host never hears what
	// the box says about addresses. The host's end comes up last: when an end comes up
	// whose peer is down, the kernel walks all routes of the network that it is in.
	if err := deafen(host, b.index); err != nil {
		return err
	}
	if err := errors.Join(box.LinkSetUp(inner), host.LinkSetUp(outer)); err != nil {
		return fmt.Errorf("set the pair up: %w", err)
	}
	for _, pool := range b.host.shared.pools() {
		gate, own := gateway(pool), address(pool, n)
		if err := end(host, outer.Attrs().Index, gate, own, boxMAC); err != nil {
			return fmt.Errorf("set the host's end up: %w", err)
		}
		if err := end(box, inner.Attrs().Index, own, gate, hostMAC); err != nil {
			return fmt.Errorf("set the box's end up: %w", err)
		}
		all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if pool.Addr().Is6() {
			all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		way := &netlink.Route{LinkIndex: inner.Attrs().Index, Dst: ipNet(all), Gw: gate.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
		if err := box.RouteAdd(way); err != nil {
			return fmt.Errorf("add the box's route to the outside: %w", err)
		}
	}
	return awaitCarrier(box, ns, inner.Attrs().Index)
}

// bringingUp is how long the kernel may take to set up an end that has its carrier. It takes
// microseconds, and as long as others change interfaces.
const bringingUp = 30 * time.Second

// awaitCarrier waits until an interface sends. The end of a pair that came up first is set up
// in the background once the other one is up, and drops what it is to send until then: the
// first packet of a connection would be lost, which is sent again only after a second. Since
// Linux 6.8 (rtnl_getlink in net/core/rtnetlink.c) who asks for the interface has that done.
func awaitCarrier(h *netlink.Handle, ns netns.NsHandle, index int) error {
	if up, err := sends(h, index); up || err != nil {
		return err
	}
	changes, err := nl.SubscribeAt(ns, netns.None(), unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		return fmt.Errorf("hear of the box's interfaces: %w", err)
	}
	defer changes.Close()
	patience := unix.NsecToTimeval(bringingUp.Nanoseconds())
	if err := changes.SetReceiveTimeout(&patience); err != nil {
		return err
	}
	for {
		if up, err := sends(h, index); up || err != nil {
			return err
		}
		if _, _, err := changes.Receive(); err != nil {
			return fmt.Errorf("wait until the box's interface is up: %w", err)
		}
	}
}

// sends reports whether an interface has a carrier, and sends.
func sends(h *netlink.Handle, index int) (bool, error) {
	link, err := h.LinkByIndex(index)
	if err != nil {
		return false, err
	}
	return link.Attrs().OperState == netlink.OperUp, nil
}

// end sets one end of a pair up: its own address, and the hardware address of and
// the route to its only peer.
func end(h *netlink.Handle, index int, own, peer netip.Addr, peerMAC net.HardwareAddr) error {
	address := &netlink.Addr{IPNet: ipNet(single(own)), Flags: unix.IFA_F_NODAD | unix.IFA_F_NOPREFIXROUTE}
	if err := h.AddrAdd(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}, address); err != nil {
		return fmt.Errorf("address %s: %w", own, err)
	}
	if err := meet(h, index, peer, peerMAC); err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: index, Scope: netlink.SCOPE_LINK, Dst: ipNet(single(peer))}
	if err := h.RouteAdd(route); err != nil {
		return fmt.Errorf("route to %s: %w", peer, err)
	}
	return nil
}

// meet makes a permanent neighbour entry for the only peer of an end, so that the
// end never asks for the peer's hardware address.
func meet(h *netlink.Handle, index int, peer netip.Addr, mac net.HardwareAddr) error {
	neighbour := &netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, IP: peer.AsSlice(), HardwareAddr: mac}
	if err := h.NeighSet(neighbour); err != nil {
		return fmt.Errorf("neighbour %s: %w", peer, err)
	}
	return nil
}

// deafen makes the host drop all ARP that arrives at its end of a pair. Otherwise
// each sender would take an entry in a table that all network namespaces share,
// and 1,024 of them fill it. The kernel forgets the end's neighbours when this
// setting changes, so meet must be called afterwards. IPv6's counterpart of ARP
// passes through the rules of our table, which drop it.
func deafen(h *netlink.Handle, index int) error {
	if err := h.LinkSetARPOff(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}); err != nil {
		return fmt.Errorf("switch ARP off at the host's end: %w", err)
	}
	return nil
}

// deafenAgain does what deafen and meet do for the host's end of an adopted box,
// as an earlier version that did not may have connected it.
func (b *Box) deafenAgain() error {
	n, err := numberOf(b.Link)
	if err != nil {
		return err
	}
	if err := deafen(b.host.routes, b.index); err != nil {
		return err
	}
	for _, pool := range b.host.shared.pools() {
		if err := meet(b.host.routes, b.index, address(pool, firstAddress+n), boxMAC); err != nil {
			return err
		}
	}
	return nil
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// removeLinks removes interfaces that the kernel has not removed together with
// their boxes' network namespaces, which it does not while some process holds a
// namespace open.
func removeLinks(h *netlink.Handle, indexes []int) error {
	var errs []error
	for _, index := range indexes {
		err := h.LinkDel(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}})
		if err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("remove interface %d: %w", index, err))
		}
	}
	return errors.Join(errs...)
}

// anyBox reports whether the host's end of any box's pair exists.
func anyBox(h *netlink.Handle) (bool, error) {
	all, err := whole(h.LinkList)
	if err != nil {
		return false, fmt.Errorf("list the interfaces: %w", err)
	}
	return slices.ContainsFunc(all, func(l netlink.Link) bool { return strings.HasPrefix(l.Attrs().Name, linkPrefix) }), nil
}

// dumps bounds how often a list is read again because it changed meanwhile.
const dumps = 100

// whole returns a list of the kernel's that did not change while it was read. It
// reads the list again if it did, and gives up after dumps attempts.
func whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range dumps {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

func sysctl(name string) (string, error) {
	b, err := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b)), err
}

func setSysctl(name, value string) error {
	return os.WriteFile("/proc/sys/"+name, []byte(value), 0)
}
