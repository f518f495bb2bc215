package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// side is the end of a connection at which a box is looked for.
type side int

const (
	begun side = nl.CTA_TUPLE_ORIG  // connections that the box has begun
	taken side = nl.CTA_TUPLE_REPLY // connections that the box has been reached by
)

// canUntrack fails where the kernel does not tell of its table of connections, and
// so can't be made to forget those of a box that has ended.
func canUntrack() error {
	const getStats = 5 // IPCTNL_MSG_CT_GET_STATS of linux/netfilter/nfnetlink_conntrack.h
	_, err := connectionRequest(getStats, unix.NLM_F_ACK, netip.IPv4Unspecified()).Execute(unix.NETLINK_NETFILTER, 0)
	if errors.Is(err, unix.EINVAL) {
		return lacks(err)
	}
	return err
}

// untrack makes the kernel forget the connections of a box that has ended. They
// would stay in its table until they time out, open TCP connections for five
// days, and what comes for them would reach the next box with the same address.
// The kernel looks through the whole table for them, so it is asked only about
// what the box can have: connections that it has begun, or its ports.
func (b *Box) untrack() error {
	n, err := numberOf(b.Link)
	if err != nil {
		return err
	}
	s := b.host.shared
	var errs []error
	if len(b.Ports) > 0 {
		errs = append(errs, forgetConnections(taken, address(s.Pool, firstAddress+n)))
	}
	active, err := hasBegun(b.index)
	if active {
		for _, pool := range s.pools() {
			errs = append(errs, forgetConnections(begun, address(pool, firstAddress+n)))
		}
	}
	return errors.Join(append(errs, err)...)
}

// hasBegun tells whether the table counts connections that the box with an
// interface has begun. The kernel drops the count when the last of them is over.
func hasBegun(index int) (bool, error) {
	c, err := nftables.New()
	if err != nil {
		return false, err
	}
	counted, err := c.GetSetElements(ourTable().flows)
	if err != nil {
		return false, fmt.Errorf("list the boxes with connections: %w", err)
	}
	return slices.ContainsFunc(counted, func(e nftables.SetElement) bool {
		return int(binary.NativeEndian.Uint32(e.Key)) == index
	}), nil
}

// forgetConnections removes the connections of an address from the kernel's
// table.
func forgetConnections(s side, a netip.Addr) error {
	found, err := s.connections(a)
	if err != nil || len(found) == 0 {
		return err
	}
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer socket.Close()
	var errs []error
	for _, message := range found {
		req := connectionRequest(nl.IPCTNL_MSG_CT_DELETE, unix.NLM_F_ACK, a)
		req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: {Socket: socket}}
		req.AddRawData(message[nl.SizeofNfgenmsg:])
		if _, err := req.Execute(unix.NETLINK_NETFILTER, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// connections returns the connections in which the packets from that side come
// from an address, each as a message of the kernel's. It looks at each message:
// the kernel's own filter takes the other addresses for the wanted one with IPv6,
// where it is not used, and earlier kernels may not know it.
func (s side) connections(a netip.Addr) (found [][]byte, err error) {
	all, err := whole(func() ([][]byte, error) {
		req := connectionRequest(nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP, a)
		if a.Is4() {
			s.filter(req, a)
		}
		return req.Execute(unix.NETLINK_NETFILTER, 0)
	})
	for _, message := range all {
		if s.source(message) == a {
			found = append(found, message)
		}
	}
	return found, err
}

// connectionRequest returns a request about the kernel's table of connections,
// for the family of an address.
func connectionRequest(what, flags int, a netip.Addr) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(netlink.ConntrackTable<<8|what, flags)
	family := uint8(unix.AF_INET)
	if a.Is6() {
		family = unix.AF_INET6
	}
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
	return req
}

// Parts of the kernel's linux/netfilter/nfnetlink_conntrack.h.
const (
	ctaFilter      = 25 // in it, the flags of a side have the number of the side's tuple
	filterBySource = 1
)

// filter makes a request one for the connections in which the packets from that
// side come from an IPv4 address.
func (s side) filter(req *nl.NetlinkRequest, a netip.Addr) {
	tuple := nl.NewRtAttr(int(s)|unix.NLA_F_NESTED, nil)
	tuple.AddRtAttr(nl.CTA_TUPLE_IP|unix.NLA_F_NESTED, nil).AddRtAttr(nl.CTA_IP_V4_SRC, a.AsSlice())
	filter := nl.NewRtAttr(ctaFilter|unix.NLA_F_NESTED, nil)
	filter.AddRtAttr(int(s), nl.Uint32Attr(filterBySource))
	req.AddData(tuple)
	req.AddData(filter)
}

// source returns the address from which the packets from that side come, in a
// message of the kernel's, or the zero address.
func (s side) source(message []byte) netip.Addr {
	addresses := attribute(attribute(message[nl.SizeofNfgenmsg:], int(s)), nl.CTA_TUPLE_IP)
	for _, kind := range []int{nl.CTA_IP_V4_SRC, nl.CTA_IP_V6_SRC} {
		if a, ok := netip.AddrFromSlice(attribute(addresses, kind)); ok {
			return a
		}
	}
	return netip.Addr{}
}

// attribute returns the value of the attribute of a kind, or nil.
func attribute(attributes []byte, kind int) []byte {
	all, _ := nl.ParseRouteAttr(attributes) // what the kernel says is well formed
	for _, a := range all {
		if int(a.Attr.Type&nl.NLA_TYPE_MASK) == kind {
			return a.Value
		}
	}
	return nil
}
