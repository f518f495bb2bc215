package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/nftables"

	"sandbox/core/engine"
)

// network looks for what keeps the packets of boxes from passing the host.
func network(context.Context, engine.Config) (string, *lack) {
	c, err := nftables.New()
	if err != nil {
		return "", &lack{"the kernel answers no netlink: " + err.Error(), "use --network None"}
	}
	chains, err := c.ListChains()
	if err != nil {
		return "", &lack{"nftables can't be used, so that boxes have no network: " + err.Error(), "modprobe nf_tables, or use --network None"}
	}
	var dropping, fixes []string
	for _, chain := range chains {
		if drops(chain) {
			name := fmt.Sprintf("%s %s %s", family(chain.Table.Family), chain.Table.Name, chain.Name)
			dropping = append(dropping, name)
			// Our own table still drops what may not pass.
			fixes = append(fixes, fmt.Sprintf("nft insert rule %s iifname 'sbx*' accept && nft insert rule %s oifname 'sbx*' accept", name, name))
		}
	}
	if dropping != nil {
		return "nftables", &lack{
			"the chain " + strings.Join(dropping, " and ") + " (a firewall's, or Docker's) drops what it does not know: boxes have no way out",
			strings.Join(fixes, " && "),
		}
	}
	return "nftables; nothing in it keeps boxes from their way out", nil
}

// drops tells whether a chain of another table ends what passes the host.
func drops(c *nftables.Chain) bool {
	return c.Table.Name != "sandbox" && c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward &&
		c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop
}

func family(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyIPv6:
		return "ip6"
	}
	return "inet"
}
