// Package network connects boxes to the network of their host, and isolates them
// from each other, from the host and from addresses that no box may reach. Only
// the shim links it.
//
// A box has one end of a veth pair and the host has the other, whose name is sbx
// and the box's number. The firewall holds nothing of a single box but its
// published ports. Its rules are in one nftables table, "sandbox", the same for
// all boxes of all homes, which recognises boxes' interfaces by the beginning of
// the name and their addresses by the host's routes. So a box costs no rule, and
// one that is killed leaves none: the kernel removes the pair with the box's
// network namespace.
//
// What is made once for all boxes (the table, and settings of the kernel) is
// shared between the shims of the host through a file in /run; see shared.go.
package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// Host is one shim's part in the network of boxes. The zero value is ready to
// use; it joins the part that all shims share when the first box needs it. Its
// methods, other than Leave, may be called by several goroutines at once.
type Host struct {
	// Outside connects the network namespace of this process to the host's; nil for a
	// shim that is in the host's. Dir is where such a shim keeps files.
	Outside Outside
	Dir     string

	mu      sync.Mutex
	shared  *shared // nil before the first box
	routes  *netlink.Handle
	allowed resolvers // the resolvers that the table lets boxes reach
	ended   []int     // the indexes of the interfaces of boxes that have ended
}

// maxEnded is how many interfaces of ended boxes are remembered. More are not
// needed, as the kernel removes the interfaces within a second.
const maxEnded = 1024

// Box is the connection of one running box. Its owner closes it.
type Box struct {
	Ports []options.Port // the published ports; HostPort is the chosen one where it was 0
	Link  string         // the name of the host's end of the pair

	index   int // of Link
	host    *Host
	held    []held
	entries []entry // the box's ports in the table
	ctx     context.Context
	end     context.CancelFunc
}

// join joins the part that all shims of the host share, unless h has done so.
func (h *Host) join() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shared != nil {
		return nil
	}
	routes, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return failed(err, "reach the kernel's routes")
	}
	h.routes = routes
	if err := h.joinShared(); err != nil {
		routes.Close()
		return failed(err, "prepare the network of boxes")
	}
	return nil
}

// joinShared joins the shared part of the network namespace. h.mu is held.
func (h *Host) joinShared() error {
	name, err := h.stateFile()
	if err != nil {
		return err
	}
	look := survey
	if h.Outside != nil { // also where an earlier shim has prepared the namespace: who connected it may have died too
		found, err := h.surveyOutside()
		if err != nil {
			return err
		}
		look = func(*netlink.Handle) (surveyed, error) { return found, nil }
	}
	s, err := join(h.routes, name, look)
	if err != nil {
		return err
	}
	if h.Outside != nil {
		if err := h.enterOutside(); err != nil {
			return errors.Join(err, s.file.Close())
		}
	}
	h.shared = s
	return nil
}

// Leave leaves the part that all shims share. If this is the last shim on the
// host and no box is left, it removes that part. No other method may be running
// or be called afterwards.
func (h *Host) Leave() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shared == nil {
		return nil
	}
	defer h.routes.Close()
	return errors.Join(removeLinks(h.routes, h.ended), h.shared.leave(h.routes))
}

// Reserve returns the connection of a new box, and reserves the ports that the
// box publishes. It is called before anything else of the box is made. The
// caller closes the Box. Errors: PortInUse, InvalidArgument, Unsupported,
// Upstream.
func (h *Host) Reserve(ports []options.Port) (*Box, error) {
	if err := h.join(); err != nil {
		return nil, err
	}
	b := h.box()
	if err := b.holdAll(ports); err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

func (b *Box) holdAll(ports []options.Port) error {
	for i, port := range ports {
		if err := b.hold(port); err != nil {
			return portFault(err, i, port)
		}
	}
	return nil
}

func (h *Host) box() *Box {
	b := &Box{host: h}
	b.ctx, b.end = context.WithCancel(context.Background())
	return b
}

// Adopt returns the connection of a running box that an earlier shim started. name
// is the box's Link. Adopt holds those of the box's ports that no other program
// has taken meanwhile; the table leads to the box whether they are held or not.
// Even with an error the Box is usable, and the caller closes it.
func (h *Host) Adopt(name string, ports []options.Port) (*Box, error) {
	b := h.box()
	b.Link, b.Ports = name, ports
	if err := h.join(); err != nil {
		return b, err
	}
	address, err := h.shared.addressOf(name)
	if err != nil {
		return b, err
	}
	link, err := h.routes.LinkByName(name)
	if err != nil {
		return b, fmt.Errorf("find interface %s: %w", b.Link, err)
	}
	b.index = link.Attrs().Index
	errs := []error{b.deafenAgain()}
	for _, port := range ports {
		if h.Outside == nil {
			b.entries = append(b.entries, entryOf(port, address)...)
		}
		errs = append(errs, b.holdAgain(port))
	}
	b.serve(address)
	return b, errors.Join(errs...)
}

// Connect makes a pair whose box's end is in the network namespace of process pid,
// and leads the box's ports to it. number, from 0, is the number that the box's
// address and link preferably have: if it is taken, Connect uses the next free
// one.
func (b *Box) Connect(pid, number int) error {
	address, err := b.connect(pid, number)
	if err != nil {
		return failed(err, "connect the box")
	}
	return b.lead(address)
}

// Publish reserves the ports of a box that is connected already, and leads them to
// it. Errors: as those of Reserve.
func (b *Box) Publish(ports []options.Port) error {
	if err := b.holdAll(ports); err != nil {
		return err
	}
	address, err := b.host.shared.addressOf(b.Link)
	if err != nil {
		return err
	}
	return b.lead(address)
}

// lead leads the box's ports to its address.
func (b *Box) lead(address netip.Addr) error {
	if len(b.Ports) == 0 {
		return nil
	}
	if b.host.Outside != nil { // nothing but the sockets leads to the box
		b.serve(address)
		return nil
	}
	// Without this the answers to what the host's loopback sends to a published
	// port would not come back. The table keeps the box from using it otherwise.
	if err := setSysctl("net/ipv4/conf/"+b.Link+"/route_localnet", "1"); err != nil {
		return failed(err, "connect the box")
	}
	for _, port := range b.Ports {
		b.entries = append(b.entries, entryOf(port, address)...)
	}
	if err := b.host.shared.publish(b.host.routes, b.entries); err != nil {
		b.entries = nil
		return failed(err, "publish the box's ports")
	}
	b.serve(address)
	return nil
}

// Close removes what Reserve, Adopt and Connect made. When it returns, the ports
// are free, nothing leads to the box, which must have ended, and the kernel keeps
// track of none of its connections. The kernel
// removes the pair with the box's network namespace, in the background, which
// takes some 20 ms. Close does not remove it: that would wait for the kernel,
// and hold up every other change of the host's network meanwhile.
func (b *Box) Close() error {
	b.release()
	if b.host.shared == nil {
		return nil // Adopt failed to join
	}
	if b.index == 0 {
		return nil // it was never connected
	}
	b.host.forget(b.index)
	if len(b.entries) > 0 {
		return errors.Join(unpublish(b.entries), b.untrack())
	}
	return b.untrack()
}

// forget notes the index of an interface that the kernel is about to remove.
func (h *Host) forget(index int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ended) == maxEnded {
		h.ended = h.ended[1:]
	}
	h.ended = append(h.ended, index)
}

// failed classifies an error of the kernel. what says what was being done.
func failed(err error, what string) error {
	switch {
	case fault.Classified(err):
		return err
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT):
		return fault.Wrap(fault.Unsupported, err, "%s: the kernel lacks veth or nftables ('sandbox doctor' says which): load it, or use network None", what)
	}
	return fault.Wrap(fault.Upstream, err, "%s", what)
}
