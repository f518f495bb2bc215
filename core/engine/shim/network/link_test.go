package network

import (
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// TestAwaitCarrier wants an end to send as soon as it is waited for, also if its peer comes up
// meanwhile. It needs root: it makes network namespaces.
func TestAwaitCarrier(t *testing.T) {
	for name, before := range map[string]bool{"the peer is up": true, "the peer comes up": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 50 {
				inner, peer, h, ns := pair(t)
				waited := make(chan error, 1)
				up := func() error { return h.LinkSetUp(peer) }
				if before {
					must(t, up())
				} else {
					time.AfterFunc(time.Millisecond, func() { waited <- up() })
				}
				must(t, awaitCarrier(h, ns, inner.Attrs().Index))
				if !running(t, ns, inner.Attrs().Name) {
					t.Fatal("it does not send yet")
				}
				if !before {
					must(t, <-waited)
				}
			}
		})
	}
}

// pair makes a network namespace with a pair, the first end of which is up.
func pair(t *testing.T) (inner, peer netlink.Link, h *netlink.Handle, ns netns.NsHandle) {
	t.Helper()
	onThread(t, func() (err error) { ns, err = netns.New(); return err })
	t.Cleanup(func() { _ = ns.Close() })
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	must(t, err)
	t.Cleanup(h.Close)
	ends := netlink.NewVeth(netlink.LinkAttrs{Name: "inner"})
	ends.PeerName = "peer"
	must(t, h.LinkAdd(ends))
	inner, err = h.LinkByName("inner")
	must(t, err)
	peer, err = h.LinkByName("peer")
	must(t, err)
	must(t, h.LinkSetUp(inner))
	return inner, peer, h, ns
}

// running reports whether an interface sends. Unlike a question to the kernel's routes this
// one changes nothing.
func running(t *testing.T, ns netns.NsHandle, name string) (is bool) {
	t.Helper()
	onThread(t, func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		flags, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		err = unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, flags)
		is = flags.Uint16()&unix.IFF_RUNNING != 0
		return err
	})
	return is
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(t *testing.T, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	must(t, <-done)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
