package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Outside is a process in the host's network namespace that works for the shim of a user
// who is not root. The shim itself is in a network namespace of its home, which that
// process connects to the host's network.
type Outside interface {
	// Connect connects the namespace, and returns a pool for addresses to which no
	// route of the host leads, and the MTU. Errors: Unsupported.
	Connect() (pool netip.Prefix, mtu int, err error)
	// Listen makes a socket of the host's network that is bound to an address, for TCP
	// one that listens, and returns the number of its port.
	Listen(at netip.AddrPort, udp bool) (*os.File, int, error)
	// Addresses calls each with the host's own addresses, at once and whenever they
	// change. It returns once each has returned for the first time. If each fails later,
	// the namespace is not connected any more.
	Addresses(each func([]netip.Prefix) error) error
}

// UplinkAddress returns the address of the interface through which the network namespace
// of a home is connected, and that of its gateway, in their pool.
func UplinkAddress(pool netip.Prefix) (own, gateway netip.Addr) {
	return address(pool, 6), address(pool, 5)
}

// UplinkBits is the size of the prefix of that interface.
const UplinkBits = 30

// UplinkPrefix returns the part of their pool that boxes have no addresses of.
func UplinkPrefix(pool netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(pool.Addr(), 24)
}

// FreePool returns a pool that no route of this process's network namespace leads to.
func FreePool() (netip.Prefix, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("reach the kernel's routes: %w", err)
	}
	defer h.Close()
	routes, err := routesOf(h, netlink.FAMILY_V4)
	if err != nil {
		return netip.Prefix{}, err
	}
	return freePool(destinations(routes))
}

// WatchOwn calls each with the addresses of this process's network namespace, at once and
// whenever they change, until ctx ends or each fails.
func WatchOwn(ctx context.Context, each func([]netip.Prefix) error) error {
	changes, err := watchRoutes()
	if err != nil {
		return fmt.Errorf("watch the host's addresses: %w", err)
	}
	defer changes.Close()
	stop := context.AfterFunc(ctx, func() { _ = changes.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("reach the kernel's routes: %w", err)
	}
	defer h.Close()
	for {
		own, err := ownPrefixes(h)
		if err == nil {
			err = each(own)
		}
		if err != nil {
			return err
		}
		if err := awaitChange(changes); err != nil {
			return cmp.Or(ctx.Err(), fmt.Errorf("watch the host's addresses: %w", err))
		}
	}
}

// watchRoutes returns a socket that has a message for each change of a route of IPv4. It is
// not one of the library, which ends a watch when messages were lost.
func watchRoutes() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_IPV4_ROUTE}); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "routes"), nil
}

// manyChanges bounds how many messages are taken before a look: else more might come for ever.
const manyChanges = 1 << 12

// awaitChange waits until there is a message, and takes all: one look is enough for many
// changes. Messages that were lost, since more came than the socket holds, are changes too.
func awaitChange(changes *os.File) error {
	rc, err := changes.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	message := make([]byte, 1) // what changed does not matter
	err = rc.Read(func(fd uintptr) bool {
		for n := 0; n < manyChanges; {
			_, _, err := unix.Recvfrom(int(fd), message, 0)
			switch {
			case err == nil, errors.Is(err, unix.ENOBUFS):
				n++
			case errors.Is(err, unix.EAGAIN):
				return n > 0
			case !errors.Is(err, unix.EINTR):
				failed = err
				return true
			}
		}
		return true
	})
	return errors.Join(err, failed)
}

// ownPrefixes returns the prefixes that are delivered to this host itself, each of which
// lies in no other.
func ownPrefixes(h *netlink.Handle) ([]netip.Prefix, error) {
	routes, err := routesOf(h, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	routes = slices.DeleteFunc(routes, func(r netlink.Route) bool {
		return r.Type != unix.RTN_LOCAL && r.Type != unix.RTN_BROADCAST && r.Type != unix.RTN_ANYCAST
	})
	return outermost(destinations(routes)), nil
}

// outermost returns those of prefixes that lie in no other.
func outermost(prefixes []netip.Prefix) []netip.Prefix {
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	var kept []netip.Prefix
	for _, p := range prefixes {
		if !slices.ContainsFunc(kept, func(k netip.Prefix) bool { return k.Contains(p.Addr()) }) {
			kept = append(kept, p.Masked())
		}
	}
	return kept
}
