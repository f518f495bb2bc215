package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"sandbox/core/engine"
)

// boxLinks is the prefix of the names of the host's ends of the boxes' network
// links.
const boxLinks = "sbx"

// network looks for firewall rules that keep the packets of boxes from passing
// through the host.
func network(context.Context, engine.Config) (string, *lack) {
	c, err := nftables.New()
	if err != nil {
		return "", &lack{"the kernel answers no netlink: " + err.Error(), "use --network None"}
	}
	closed, err := closedChains(c)
	if err != nil {
		return "", &lack{"nftables can't be used, so that boxes have no network: " + err.Error(), "modprobe nf_tables, or use --network None"}
	}
	var names, fixes []string
	for _, chain := range closed {
		names = append(names, fmt.Sprintf("%s %s %s", family(chain.Table.Family), chain.Table.Name, chain.Name))
		fixes = append(fixes, allow(c, chain))
	}
	if names != nil {
		return "nftables", &lack{
			"the chain " + strings.Join(names, " and ") + " (of a firewall or Docker) drops unknown traffic: boxes can't reach the network",
			strings.Join(fixes, " && "), // our own table still drops what must not pass
		}
	}
	if legacy() {
		return "nftables; there are also rules of the old iptables, which doctor can't read: check that `iptables-legacy -S FORWARD` drops nothing", nil
	}
	return "nftables; none of its rules blocks the traffic of boxes", nil
}

// closedChains returns the forward chains of other tables that drop every
// packet they do not know, and have no rule that accepts the packets of boxes
// before that.
func closedChains(c *nftables.Conn) ([]*nftables.Chain, error) {
	chains, err := c.ListChains()
	if err != nil {
		return nil, err
	}
	var closed []*nftables.Chain
	for _, chain := range chains {
		if chain.Table.Name == "sandbox" || chain.Hooknum == nil || *chain.Hooknum != *nftables.ChainHookForward || family(chain.Table.Family) == "" {
			continue
		}
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return nil, err
		}
		drops := chain.Policy != nil && *chain.Policy == nftables.ChainPolicyDrop || slices.ContainsFunc(rules, endsAll)
		if drops && !letsThrough(c, chain, rules) {
			closed = append(closed, chain)
		}
	}
	return closed, nil
}

// endsAll tells whether a rule drops or rejects every packet, as the last rule
// of firewalld does.
func endsAll(r *nftables.Rule) bool {
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Counter, *expr.Log:
		case *expr.Reject:
			return true
		case *expr.Verdict:
			return e.Kind == expr.VerdictDrop
		default:
			return false // the rule has a condition
		}
	}
	return false
}

// letsThrough tells whether the packets of boxes are accepted in both
// directions, by rules in the chain itself or in the one that Docker reserves
// for such rules.
func letsThrough(c *nftables.Conn, chain *nftables.Chain, rules []*nftables.Rule) bool {
	if user := dockerUser(c, chain.Table); user != nil {
		more, _ := c.GetRules(chain.Table, user) // a chain that can't be read counts as one without rules
		rules = slices.Concat(rules, more)
	}
	accepts := func(key expr.MetaKey) bool {
		return slices.ContainsFunc(rules, func(r *nftables.Rule) bool { return acceptsBoxes(r, key) })
	}
	return accepts(expr.MetaKeyIIFNAME) && accepts(expr.MetaKeyOIFNAME)
}

// acceptsBoxes tells whether a rule accepts the packets of boxes by the
// interface's name alone.
func acceptsBoxes(r *nftables.Rule, key expr.MetaKey) bool {
	var named, accepted bool
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Meta:
			named = e.Key == key
		case *expr.Cmp:
			if !named || e.Op != expr.CmpOpEq || !bytes.Equal(e.Data, []byte(boxLinks)) {
				return false
			}
		case *expr.Verdict:
			accepted = e.Kind == expr.VerdictAccept
		case *expr.Counter:
		default:
			return false
		}
	}
	return named && accepted
}

// dockerUser returns the chain that Docker runs before its own rules and leaves
// to the host's owner, or nil if the table has none.
func dockerUser(c *nftables.Conn, table *nftables.Table) *nftables.Chain {
	chain, err := c.ListChain(table, "DOCKER-USER")
	if err != nil {
		return nil
	}
	return chain
}

// allow returns the command line that lets the packets of boxes through a
// chain.
func allow(c *nftables.Conn, chain *nftables.Chain) string {
	at := chain.Name
	if user := dockerUser(c, chain.Table); user != nil {
		at = user.Name
	}
	name := fmt.Sprintf("%s %s %s", family(chain.Table.Family), chain.Table.Name, at)
	return fmt.Sprintf("nft insert rule %s iifname '%s*' accept && nft insert rule %s oifname '%s*' accept", name, boxLinks, name, boxLinks)
}

// legacy tells whether the kernel has rules of the old iptables, which nftables
// does not show.
func legacy() bool {
	for _, file := range []string{"/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"} {
		if names, err := os.ReadFile(file); err == nil && strings.Contains(string(names), "filter") {
			return true
		}
	}
	return false
}

// family returns the name of an address family, or "" for one whose chains
// never see the packets of a box that pass through the host.
func family(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyIPv6:
		return "ip6"
	case nftables.TableFamilyINet:
		return "inet"
	}
	return ""
}
