package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// enterOutside prepares the network namespace of a home: its loopback, and the chain that
// keeps boxes from the addresses of the host.
func (h *Host) enterOutside() error {
	lo, err := h.routes.LinkByName("lo")
	if err == nil {
		err = h.routes.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set the loopback up: %w", err)
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	t := ourTable()
	own := hostSet(t.Table)
	if err := c.AddSet(own, nil); err != nil {
		return err
	}
	const before = -10 // the chains of the table
	priority := nftables.ChainPriority(before)
	guard := hook("not_to_host", nftables.ChainTypeFilter, nftables.ChainHookForward, &priority, [][]part{
		{fromBox(), dns(t.dns[0], false), accept()},
		{fromBox(), inHost(own), drop()},
	})
	guard.Table = t.Table
	c.AddChain(&guard.Chain)
	c.FlushChain(&guard.Chain)
	for _, parts := range guard.rules {
		c.AddRule(&nftables.Rule{Table: t.Table, Chain: &guard.Chain, Exprs: slices.Concat(parts...)})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("make the rules that keep boxes from the host: %w", err)
	}
	return h.Outside.Addresses(closeHost)
}

// surveyOutside connects the network namespace, and returns what that was told of the host.
func (h *Host) surveyOutside() (surveyed, error) {
	pool, mtu, err := h.Outside.Connect()
	return surveyed{pool: pool, mtu: mtu}, err
}

// hostSet is the set of the addresses of the host that a home's network namespace is
// connected to.
func hostSet(t *nftables.Table) *nftables.Set {
	return &nftables.Set{Table: t, Name: "host", KeyType: nftables.TypeIPAddr, Interval: true}
}

// inHost matches a packet to an address in the set.
func inHost(set *nftables.Set) part {
	return append(family(false),
		header(expr.PayloadBaseNetworkHeader, destination4, 4, unix.NFT_REG_1),
		&expr.Lookup{SourceRegister: unix.NFT_REG_1, SetName: set.Name, SetID: set.ID})
}

// closeHost makes the set of the host's addresses these, in one step.
func closeHost(own []netip.Prefix) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	set := hostSet(ourTable().Table)
	c.FlushSet(set)
	if err := c.SetAddElements(set, intervals(own)); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return fault.Wrap(fault.Upstream, err, "close the addresses of the host to boxes")
	}
	return nil
}

// intervals returns the elements of a set of prefixes that do not overlap. Behind those that
// follow upon one another the kernel wants the first address that is in none.
func intervals(prefixes []netip.Prefix) (all []nftables.SetElement) {
	prefixes = slices.Clone(prefixes)
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	var end netip.Addr
	for i, p := range prefixes {
		if i == 0 || p.Addr() != end {
			all = append(all, nftables.SetElement{Key: p.Addr().AsSlice()})
		}
		end = behind(p)
		if end.IsValid() && (i+1 == len(prefixes) || prefixes[i+1].Addr() != end) {
			all = append(all, nftables.SetElement{Key: end.AsSlice(), IntervalEnd: true})
		}
	}
	return all
}

// behind returns the first address behind an IPv4 prefix, or the zero address at the end.
func behind(p netip.Prefix) netip.Addr {
	last := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(last).Next()
}
