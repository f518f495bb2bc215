package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// tableName is our one table's, of the family inet.
const tableName = "sandbox"

// closed are addresses that no box reaches, beside the host's own and the
// other boxes': what is on the link itself, and what clouds answer questions
// about their machines on.
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"), // several at once, and reserved
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("::/127"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("fd20:ce::254/128"),
}

// table is our table as the kernel shall have it. The rules are the same for
// all boxes; boxes add their ports to the maps.
type table struct {
	*nftables.Table
	byPort    *nftables.Set // protocol and port, on every address of the host
	byAddress *nftables.Set // address, protocol and port
	dns       [2]*nftables.Set
}

func ourTable() table {
	t := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	target := nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	ports := func(name string, key ...nftables.SetDatatype) *nftables.Set {
		return &nftables.Set{Table: t, Name: name, IsMap: true, Concatenation: true, KeyType: nftables.MustConcatSetType(key...), DataType: target}
	}
	return table{
		Table:     t,
		byPort:    ports("ports", nftables.TypeInetProto, nftables.TypeInetService),
		byAddress: ports("address_ports", nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService),
		dns: [2]*nftables.Set{
			{Table: t, Name: "resolvers", KeyType: nftables.TypeIPAddr},
			{Table: t, Name: "resolvers6", KeyType: nftables.TypeIP6Addr},
		},
	}
}

// makeTable makes the table, in one transaction, where it is not.
func makeTable(pools []netip.Prefix) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	if _, err := c.ListTableOfFamily(tableName, nftables.TableFamilyINet); !errors.Is(err, unix.ENOENT) {
		return err
	}
	t := ourTable()
	c.AddTable(t.Table)
	for _, set := range []*nftables.Set{t.byPort, t.byAddress, t.dns[0], t.dns[1]} {
		if err := c.AddSet(set, nil); err != nil {
			return err
		}
	}
	for _, chain := range t.chains(pools) {
		chain.Table = t.Table
		c.AddChain(&chain.Chain)
		for _, parts := range chain.rules {
			c.AddRule(&nftables.Rule{Table: t.Table, Chain: &chain.Chain, Exprs: slices.Concat(parts...)})
		}
	}
	return c.Flush()
}

type chain struct {
	nftables.Chain
	rules [][]part
}

func (t table) chains(pools []netip.Prefix) []*chain {
	filter, nat := nftables.ChainTypeFilter, nftables.ChainTypeNAT
	leads := [][]part{
		{notFromBox(), toHost(), lead(t.byAddress, true)},
		{notFromBox(), toHost(), lead(t.byPort, false)},
	}
	names := [][]part{
		{fromBox(), dns(t.dns[0], false), accept()},
		{fromBox(), dns(t.dns[1], true), accept()},
	}
	return []*chain{
		hook("source", filter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw, [][]part{
			{fromBox(), foreignSource(), drop()},
			{fromBox(), to(netip.MustParsePrefix("127.0.0.0/8")), drop()},
			// Boxes have no use for these addresses. The host would tell each
			// of an error, and so learn it, before another chain is asked.
			{fromBox(), from(netip.MustParsePrefix("fe80::/10")), drop()},
		}),
		hook("to_host", filter, nftables.ChainHookInput, nftables.ChainPriorityFilter, slices.Concat(
			[][]part{{fromBox(), answers(), accept()}}, names, [][]part{{fromBox(), drop()}},
		)),
		hook("through_host", filter, nftables.ChainHookForward, nftables.ChainPriorityFilter, slices.Concat(
			[][]part{
				{fromBox(), toBox(), drop()},
				{fromBox(), answers(), accept()},
				{toBox(), answers(), accept()},
				{toBox(), published(), accept()},
				{toBox(), drop()},
			}, names, dropAll(slices.Concat(closed, pools)),
		)),
		hook("arrive", nat, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest, leads),
		hook("own", nat, nftables.ChainHookOutput, nftables.ChainPriorityNATDest, leads),
		hook("leave", nat, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, slices.Concat(
			translate(pools),
			// The host's loopback, to a published port.
			[][]part{{toBox(), from(netip.MustParsePrefix("127.0.0.0/8")), masquerade()}},
		)),
	}
}

func hook(name string, kind nftables.ChainType, at *nftables.ChainHook, priority *nftables.ChainPriority, rules [][]part) *chain {
	return &chain{nftables.Chain{Name: name, Type: kind, Hooknum: at, Priority: priority}, rules}
}

func dropAll(prefixes []netip.Prefix) (rules [][]part) {
	for _, p := range prefixes {
		rules = append(rules, []part{fromBox(), to(p), drop()})
	}
	return rules
}

func translate(pools []netip.Prefix) (rules [][]part) {
	for _, p := range pools {
		rules = append(rules, []part{notToBox(), from(p), masquerade()})
	}
	return rules
}

func removeTable() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.DelTable(ourTable().Table)
	if err := c.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the nftables table: %w", err)
	}
	return nil
}
