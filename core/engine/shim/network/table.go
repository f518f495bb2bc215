package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// tableName is the name of our only table, which is of the family inet.
const tableName = "sandbox"

// closed are the addresses that no box may reach, in addition to the host's own and
// those of other boxes: addresses that are local to a link or a host, multicast
// and reserved ones, and those at which clouds answer questions about their
// machines.
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"), // multicast and reserved
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("::/127"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("fd20:ce::254/128"),
}

// table is our table as it should be in the kernel. The rules are the same for
// all boxes; for each box only its ports are added to the maps.
type table struct {
	*nftables.Table
	byPort    *nftables.Set // by protocol and port, on every address of the host
	byAddress *nftables.Set // by address, protocol and port
	dns       [2]*nftables.Set
	flows     *nftables.Set    // counts the connections of each box, by its interface
	full      *nftables.Set    // boxes that reached maxFlows less than pause ago
	hops      [2]*nftables.Set // next hops of each box, by its interface and their address
	asking    *nftables.Set    // how fast each box comes to other next hops, by its interface
}

// maxFlows is how many connections the kernel keeps track of for one box. All
// boxes and the host share one connection table, which has some 260,000 entries
// by default.
const maxFlows = 4096

// pause is for how long a box that has reached maxFlows can begin no other
// connection. Its connections are not counted during that time: the kernel notes
// each connection that it counts, even one that is then dropped, and forgets
// these notes more slowly than a box can cause them.
const pause = 100 * time.Millisecond

// hopsAtOnce and hopsPerSecond are how many next hops a box may come to: the
// host asks each for its hardware address, and has 1,024 entries for those of all
// network namespaces. What goes on to a gateway has one next hop. A box that
// sends to addresses on the host's own links has as many as these.
const (
	hopsAtOnce    = 64
	hopsPerSecond = 16
)

// hopKept is for how long a box may go on to use a next hop, before it counts
// again: the host asks for 3 seconds whether anybody has an address.
const hopKept = 5 * time.Second

// hopsPause is the time after which a box may come to hopsAtOnce next hops again.
const hopsPause = 10 * time.Second

// version is the version of the rules. Raise it when they change. An empty chain
// with the version in its name tells other shims which rules the table has.
const version = 3

func versionChain() string { return fmt.Sprintf("version_%d", version) }

// letOut is the name of the chain that packets which a box may send pass last,
// and letOn that of the one before, for those that leave the host.
const (
	letOut = "let_out"
	letOn  = "let_on"
)

func ourTable() table {
	t := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	target := nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
	ports := func(name string, key ...nftables.SetDatatype) *nftables.Set {
		return &nftables.Set{Table: t, Name: name, IsMap: true, Concatenation: true, KeyType: nftables.MustConcatSetType(key...), DataType: target}
	}
	byHop := func(name string, address nftables.SetDatatype) *nftables.Set {
		key := nftables.MustConcatSetType(nftables.TypeIFIndex, address)
		return &nftables.Set{Table: t, Name: name, Concatenation: true, KeyType: key, Dynamic: true, HasTimeout: true}
	}
	return table{
		Table:     t,
		byPort:    ports("ports", nftables.TypeInetProto, nftables.TypeInetService),
		byAddress: ports("address_ports", nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService),
		dns: [2]*nftables.Set{
			{Table: t, Name: "resolvers", KeyType: nftables.TypeIPAddr},
			{Table: t, Name: "resolvers6", KeyType: nftables.TypeIP6Addr},
		},
		flows: &nftables.Set{Table: t, Name: "flows", KeyType: nftables.TypeIFIndex, Dynamic: true},
		full:  &nftables.Set{Table: t, Name: "full", KeyType: nftables.TypeIFIndex, Dynamic: true, HasTimeout: true},
		hops: [2]*nftables.Set{
			byHop("hops", nftables.TypeIPAddr), byHop("hops6", nftables.TypeIP6Addr),
		},
		asking: &nftables.Set{Table: t, Name: "asking", KeyType: nftables.TypeIFIndex, Dynamic: true, HasTimeout: true},
	}
}

// makeTable makes the table, in one transaction, if it does not exist. It replaces
// the rules of an earlier version with ours, and leaves those of a later one.
// That is safe because the maps with the published ports of running boxes are the
// same in all versions, and shims of earlier versions use the table as they find
// it.
func makeTable(pools []netip.Prefix) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	switch found, err := versionOf(c); {
	case err != nil || found >= version:
		return err
	case found > 0:
		c.FlushTable(ourTable().Table) // removes the rules only
	}
	if err := ourTable().add(c, pools); err != nil {
		return err
	}
	err = c.Flush()
	if errors.Is(err, unix.ENOENT) {
		return lacks(err)
	}
	return err
}

// lacks explains an error of a kernel that has not all that networks need, and could
// not load it.
func lacks(err error) error {
	return fault.Wrap(fault.Unsupported, err, "the kernel lacks a part of netfilter that boxes' networks need: "+
		"modprobe nft_fib_inet nft_masq nft_connlimit nft_limit nf_conntrack_netlink, or use network None")
}

// versionOf returns the version of the table in the kernel, or 0 if there is none.
func versionOf(c *nftables.Conn) (int, error) {
	if _, err := c.ListTableOfFamily(tableName, nftables.TableFamilyINet); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return 0, nil
		}
		return 0, err
	}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return 0, err
	}
	found := 1 // the first version had no chain that says so
	for _, chain := range chains {
		var n int
		if _, err := fmt.Sscanf(chain.Name, "version_%d", &n); err == nil && chain.Table.Name == tableName {
			found = max(found, n)
		}
	}
	return found, nil
}

// add adds the table to c's transaction. The sets that exist already keep their
// elements.
func (t table) add(c *nftables.Conn, pools []netip.Prefix) error {
	c.AddTable(t.Table)
	for _, set := range []*nftables.Set{t.byPort, t.byAddress, t.dns[0], t.dns[1], t.flows, t.full, t.hops[0], t.hops[1], t.asking} {
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
	return nil
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
		{fromBox(), dns(t.dns[0], false), leadTo(letOut)},
		{fromBox(), dns(t.dns[1], true), leadTo(letOut)},
	}
	return append(t.bounds(), []*chain{
		hook("source", filter, nftables.ChainHookPrerouting, nftables.ChainPriorityRaw, [][]part{
			{fromBox(), foreignSource(), drop()},
			{fromBox(), to(netip.MustParsePrefix("127.0.0.0/8")), drop()},
			// Boxes have no use for these addresses. Without this rule the host
			// would send an error to each of them, and so learn the address,
			// before another chain could drop the packet.
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
			}, names, dropAll(slices.Concat(closed, pools)), [][]part{{fromBox(), leadTo(letOn)}},
		)),
		hook("arrive", nat, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest, leads),
		hook("own", nat, nftables.ChainHookOutput, nftables.ChainPriorityNATDest, leads),
		hook("leave", nat, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource, slices.Concat(
			translate(pools),
			// This is for packets from the host's loopback to a published port.
			[][]part{{toBox(), from(netip.MustParsePrefix("127.0.0.0/8")), masquerade()}},
		)),
	}...)
}

// bounds returns the chains that no hook of the kernel begins with: others lead
// to them.
func (t table) bounds() []*chain {
	return []*chain{
		{Chain: nftables.Chain{Name: versionChain()}},
		// This chain limits the connections of boxes that all other rules let
		// through: what is dropped before leaves nothing in the kernel's
		// connection table. Only the first packet of a connection is counted.
		{nftables.Chain{Name: letOut}, [][]part{
			{tracked(), accept()},
			{isFull(t.full), drop()},
			{tooMany(t.flows), addTo(t.full), drop()},
			{accept()},
		}},
		// This chain limits to how many next hops a box comes: the host takes an
		// entry of its table of neighbours for each.
		{nftables.Chain{Name: letOn}, [][]part{
			{isHop(t.hops[0], false), leadTo(letOut)},
			{isHop(t.hops[1], true), leadTo(letOut)},
			{tooFast(t.asking), drop()},
			{addHop(t.hops[0], false)},
			{addHop(t.hops[1], true)},
			{leadTo(letOut)},
		}},
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
