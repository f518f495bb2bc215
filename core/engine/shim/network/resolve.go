package network

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/google/nftables"
)

// resolverFiles are the files that name the host's resolvers. The first may name
// only one on the host's loopback, which a box can't reach; then the second,
// systemd's, names the resolvers behind it.
var resolverFiles = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// resolvers are the resolvers of a box: those of the host's that a box can reach.
type resolvers struct {
	servers []netip.Addr
	rest    []string // the file's lines with search, domain or options
}

// maxResolvConf is the size in bytes above which a file is ignored. It is ample,
// as the C library uses only three servers.
const maxResolvConf = 64 << 10

// parseResolvers returns what a resolv.conf says, without the servers that a box
// can't reach. v6 says whether boxes have IPv6.
func parseResolvers(text []byte, v6 bool) (r resolvers) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			a, err := netip.ParseAddr(fields[1])
			a = a.Unmap()
			if err == nil && !a.IsLoopback() && !a.IsUnspecified() && a.Zone() == "" && (v6 || a.Is4()) {
				r.servers = append(r.servers, a)
			}
		case "search", "domain", "options":
			r.rest = append(r.rest, strings.Join(fields, " "))
		}
	}
	return r
}

// text returns the box's resolv.conf, or "" if there is no resolver.
func (r resolvers) text() string {
	if len(r.servers) == 0 {
		return ""
	}
	var b strings.Builder
	for _, s := range r.servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	for _, line := range r.rest {
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (r resolvers) equal(other resolvers) bool { return r.text() == other.text() }

// Resolvers returns the resolv.conf of a box, and makes the table let boxes reach
// the resolvers in it. It returns "" if the host has no resolver that a box can
// reach. Errors: Unsupported, Upstream.
func (b *Box) Resolvers() (string, error) {
	h := b.host
	h.mu.Lock()
	defer h.mu.Unlock()
	var r resolvers
	for _, name := range resolverFiles {
		text, err := os.ReadFile(name)
		if err != nil || len(text) > maxResolvConf {
			continue
		}
		if r = parseResolvers(text, h.shared.Pool6 != nil); len(r.servers) > 0 {
			break
		}
	}
	if r.equal(h.allowed) {
		return r.text(), nil
	}
	if err := allow(r.servers); err != nil {
		return "", failed(err, "let boxes reach the resolvers")
	}
	h.allowed = r
	return r.text(), nil
}

// allow adds the resolvers to those that the table lets boxes reach. Earlier ones
// stay, because running boxes use them.
func allow(servers []netip.Addr) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	t := ourTable()
	for _, s := range servers {
		set := t.dns[0]
		if s.Is6() {
			set = t.dns[1]
		}
		if err := c.SetAddElements(set, []nftables.SetElement{{Key: s.AsSlice()}}); err != nil {
			return err
		}
	}
	return c.Flush()
}
