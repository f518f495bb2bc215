package engine_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/core/options"
	"sandbox/test/boxes"
)

// closedIP is in the addresses that no box reaches.
const closedIP = "169.254.169.253"

// configure runs f in a mount namespace of its own in which the host has these
// resolvers: its own stub, and those behind it.
func configure(t *testing.T, behind string, f func()) {
	dir := t.TempDir()
	stub := filepath.Join(dir, "resolv.conf")
	must(t, os.WriteFile(stub, []byte("nameserver 127.0.0.53\noptions edns0\n"), 0o644))
	must(t, unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS)) // of this thread, which ends with the test's use of it
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(t, unix.Mount(stub, "/etc/resolv.conf", "", unix.MS_BIND, ""))
	must(t, unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
	must(t, os.MkdirAll("/run/systemd/resolve", 0o755))
	must(t, os.WriteFile("/run/systemd/resolve/resolv.conf", []byte(behind), 0o644))
	f()
}

// A box asks the resolvers behind the host's stub, on port 53 and no other,
// also where all else of their address is closed to it.
func TestResolvers(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.world.do(t, func() { must(t, ipUp("wan", closedIP+"/32")) })
	n.host.do(t, func() {
		wan, err := netlink.LinkByName("wan")
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: wan.Attrs().Index, Dst: netlink.NewIPNet(net.ParseIP(closedIP))}))
	})
	const behind = "nameserver " + closedIP + "\nnameserver " + hostIP + "\nsearch lab.example\n"
	id := boxes.ID(n.home, 1)
	n.host.do(t, func() {
		configure(t, behind, func() {
			_, err := boxes.Create(t.Context(), n.engine, id, n.root)
			must(t, err)
		})
	})
	t.Cleanup(func() { n.remove(t, id) })
	if out, _ := boxes.Output(t, n.engine, id, options.Exec{Cmd: []string{"cat", "/etc/resolv.conf"}}); out != behind {
		t.Errorf("the box has %q, want %q", out, behind)
	}
	rec, err := n.engine.Get(t.Context(), id)
	must(t, err)
	for _, port := range []int{53, 54} {
		n.world.listen(t, closedIP, port)
		n.world.listen(t, metadataIP, port)
		n.host.listen(t, hostIP, port)
	}
	box := boxSpace(t, rec)
	for address, open := range map[string]bool{
		closedIP + ":53": true, closedIP + ":54": false, hostIP + ":53": true, hostIP + ":54": false, metadataIP + ":53": false,
	} {
		for _, network := range []string{"tcp", "udp"} {
			if got, err := box.dial(t, network, address, open); (err == nil) != open {
				t.Errorf("%s %s: %q, %v; want open: %v", network, address, got, err, open)
			}
		}
	}
}
