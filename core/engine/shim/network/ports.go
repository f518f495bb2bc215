package network

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// entry is a published port as an element of one of the table's maps.
type entry struct {
	set  *nftables.Set
	elem nftables.SetElement
}

// hostIP returns the address on which a port is published, 127.0.0.1 by default.
func hostIP(p options.Port) (netip.Addr, error) {
	if p.HostIP == "" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	a, err := netip.ParseAddr(p.HostIP)
	return a.Unmap(), err
}

// entryOf returns the entry of a port. A port on an IPv6 address has none, as the
// shim forwards its connections.
func entryOf(p options.Port, box netip.Addr) []entry {
	ip, err := hostIP(p)
	if err != nil || ip.Is6() {
		return nil
	}
	proto := byte(unix.IPPROTO_TCP)
	if p.Protocol == options.ProtocolUDP {
		proto = unix.IPPROTO_UDP
	}
	t := ourTable()
	e := entry{t.byPort, nftables.SetElement{
		Key: slot([]byte{proto}, port(p.HostPort)), Val: slot(box.AsSlice(), port(p.GuestPort)),
	}}
	if !ip.IsUnspecified() {
		e.set, e.elem.Key = t.byAddress, slot(ip.AsSlice(), e.elem.Key)
	}
	return []entry{e}
}

func port(n int) []byte { return binaryutil.BigEndian.PutUint16(uint16(n)) } //nolint:gosec // checked by options

// slot returns the fields as nftables registers hold them, one after another. Each
// field is padded with zeros to whole registers of 4 bytes.
func slot(fields ...[]byte) (b []byte) {
	for _, f := range fields {
		b = append(b, f...)
		b = append(b, make([]byte, (4-len(f)%4)%4)...)
	}
	return b
}

// publish puts the entries into the table. If one is there already, it may be that
// of a box which has ended and whose shim died, so publish purges such entries
// and tries once more. Errors: PortInUse (another box publishes the port).
func (s *shared) publish(h *netlink.Handle, entries []entry) error {
	err := edit(entries, (*nftables.Conn).SetAddElements)
	if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := purge(h, s); err != nil {
		return err
	}
	err = edit(entries, (*nftables.Conn).SetAddElements)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
		return fault.Wrap(fault.PortInUse, err, "another box publishes one of the ports")
	}
	return err
}

// unpublish removes the entries from the table, those of them that are there: with one that
// is missing, the kernel removes none of a transaction.
func unpublish(entries []entry) error {
	err := edit(entries, (*nftables.Conn).SetDeleteElements)
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	there, err := remaining(entries)
	failed := []error{err}
	for _, e := range there {
		if err := edit([]entry{e}, (*nftables.Conn).SetDeleteElements); !errors.Is(err, unix.ENOENT) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// remaining returns those of the entries that are in the table. A port that leads to another
// box by now is none of them.
func remaining(entries []entry) (there []entry, err error) {
	c, err := nftables.New()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		elements, err := c.GetSetElements(e.set)
		if err != nil {
			return there, fmt.Errorf("list the published ports: %w", err)
		}
		if slices.ContainsFunc(elements, func(is nftables.SetElement) bool {
			return bytes.Equal(is.Key, e.elem.Key) && bytes.Equal(is.Val, e.elem.Val)
		}) {
			there = append(there, e)
		}
	}
	return there, nil
}

// edit applies how to each entry, in one transaction.
func edit(entries []entry, how func(*nftables.Conn, *nftables.Set, []nftables.SetElement) error) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := how(c, e.set, []nftables.SetElement{e.elem}); err != nil {
			return err
		}
	}
	return c.Flush()
}

// purge removes the entries of boxes that do not exist any more, which a shim that
// was killed has left. It recognises them by the interface: that of a running box
// exists.
func purge(h *netlink.Handle, s *shared) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	var dead []entry
	t := ourTable()
	for _, set := range []*nftables.Set{t.byPort, t.byAddress} {
		elements, err := c.GetSetElements(set)
		if err != nil {
			return fmt.Errorf("list the published ports: %w", err)
		}
		for _, e := range elements {
			_, err := h.LinkByName(s.linkOf(e.Val))
			var gone netlink.LinkNotFoundError
			if errors.As(err, &gone) {
				dead = append(dead, entry{set, e})
			}
		}
	}
	if dead == nil {
		return nil
	}
	return unpublish(dead)
}

// linkOf returns the name of the interface of the box to which an entry leads, or
// "" if the address is not one of the pool.
func (s *shared) linkOf(value []byte) string {
	base := s.Pool.Addr().AsSlice()
	if len(value) < 4 || !bytes.Equal(value[:2], base[:2]) {
		return ""
	}
	return linkPrefix + strconv.Itoa(int(value[2])<<8+int(value[3])-firstAddress)
}

func portFault(err error, i int, p options.Port) error {
	what := fmt.Sprintf("ports[%d]: %s port %d", i, p.Protocol, p.HostPort)
	if p.HostIP != "" {
		what += " on " + p.HostIP
	}
	switch {
	case fault.Classified(err):
		return err
	case errors.Is(err, unix.EADDRINUSE):
		return fault.Wrap(fault.PortInUse, err, "%s is in use: choose another, or 0 for a free one", what)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fault.Wrap(fault.InvalidArgument, err, "%s: the host has no such address", what)
	}
	return fault.Wrap(fault.Upstream, err, "%s can't be taken", what)
}
