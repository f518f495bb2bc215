package doctor

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"

	"sandbox/core/engine"
)

// firewalls are forward chains as common tools make them, and whether the
// packets of boxes pass them. The test loads them in a network namespace of its
// own.
var firewalls = map[string]struct {
	rules string
	names string // name of the chain that is reported; "" if boxes pass
	keeps string // the chain that the fix adds rules to
}{
	"none":        {"", "", ""},
	"ours":        {"add table inet sandbox; add chain inet sandbox f { type filter hook forward priority 0; policy drop; }", "", ""},
	"another way": {"add table inet x; add chain inet x f { type filter hook input priority 0; policy drop; }", "", ""},
	"conditions":  {"add table inet x; add chain inet x f { type filter hook forward priority 0; }; add rule inet x f ip daddr 192.0.2.1 drop", "", ""},
	"ufw":         {"add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }", "ip filter FORWARD", "ip filter FORWARD"},
	"firewalld": {"add table inet firewalld; add chain inet firewalld filter_FORWARD { type filter hook forward priority 10; };" +
		"add rule inet firewalld filter_FORWARD ct state established,related accept; add rule inet firewalld filter_FORWARD reject with icmpx type admin-prohibited",
		"inet firewalld filter_FORWARD", "inet firewalld filter_FORWARD"},
	"Docker": {"add table ip filter; add chain ip filter DOCKER-USER; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; };" +
		"add rule ip filter FORWARD counter jump DOCKER-USER", "ip filter FORWARD", "ip filter DOCKER-USER"},
}

func TestFirewalls(t *testing.T) {
	t.Parallel()
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Fatal("needs nft, to make rules as firewalls do: apt-get install nftables")
	}
	for name, f := range firewalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime.LockOSThread() // never unlocked: the thread, and the namespace, end with the test
			ns, err := netns.New()
			if err != nil {
				t.Fatal("needs root: ", err)
			}
			defer ns.Close()
			run(t, nft, f.rules)
			_, missing := network(context.Background(), engine.Config{})
			if (missing != nil) != (f.names != "") {
				t.Fatalf("found %+v", missing)
			}
			if missing == nil {
				return
			}
			if !strings.Contains(missing.missing, f.names) || !strings.Contains(missing.fix, f.keeps) {
				t.Errorf("found %+v, want %s named and %s mended", missing, f.names, f.keeps)
			}
			if out, err := exec.Command("sh", "-c", missing.fix).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v, %s", missing.fix, err, out)
			}
			if _, still := network(context.Background(), engine.Config{}); still != nil {
				t.Errorf("mended, and still %+v", still)
			}
		})
	}
}

func run(t *testing.T, nft, rules string) {
	t.Helper()
	if out, err := exec.Command(nft, rules).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v, %s", rules, err, out)
	}
}
