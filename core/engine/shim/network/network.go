// Package network connects boxes with the network of their host, and keeps
// them apart from everything that is not theirs. It is linked into the shim
// alone.
//
// A box has one end of a veth pair, the host the other, called sbx and the
// box's number. Nothing of a box stands in the firewall but its published
// ports: one nftables table, "sandbox", the same for all boxes of all homes,
// knows their interfaces by the beginning of the name and their addresses by
// the host's routes. So a box costs no rule, and one that is killed leaves
// nothing: the kernel takes the pair away with the box's network namespace.
//
// What is made once for all boxes (the table, settings of the kernel) is
// shared between the shims of the host through a file in /run, see shared.go.
package network

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// Host is one shim's part in the network of boxes. The zero value is ready;
// it takes hold of the shared part with the first box. Its methods may be
// called by several goroutines at once.
type Host struct {
	mu      sync.Mutex
	shared  *shared // nil before the first box
	routes  *netlink.Handle
	allowed resolvers // those that the table lets boxes reach
	ended   []int     // interfaces of boxes that have ended, by number
}

// maxEnded is how many interfaces of ended boxes are remembered: the kernel
// takes them away within a second.
const maxEnded = 1024

// Box is the connection of one running box. Its owner closes it.
type Box struct {
	Ports []options.Port // with the free ports that were chosen
	Link  string         // the host's end

	index   int // of Link
	host    *Host
	held    []held
	entries []entry // in the table
	ctx     context.Context
	end     context.CancelFunc
}

// join takes hold of the shared part.
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
	s, err := join(routes)
	if err != nil {
		routes.Close()
		return failed(err, "prepare the network of boxes")
	}
	h.routes, h.shared = routes, s
	return nil
}

// Leave lets go of the shared part; the last shim on the host, when no box
// is left, takes it away. No other call may follow or run.
func (h *Host) Leave() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shared == nil {
		return nil
	}
	defer h.routes.Close()
	return errors.Join(removeLinks(h.routes, h.ended), h.shared.leave(h.routes))
}

// Reserve takes the ports that a new box publishes, before anything of the
// box is made. Errors: PortInUse, InvalidArgument, Unsupported, Upstream.
func (h *Host) Reserve(ports []options.Port) (*Box, error) {
	if err := h.join(); err != nil {
		return nil, err
	}
	b := h.box()
	for i, port := range ports {
		if err := b.hold(port); err != nil {
			b.release()
			return nil, portFault(err, i, port)
		}
	}
	return b, nil
}

func (h *Host) box() *Box {
	b := &Box{host: h}
	b.ctx, b.end = context.WithCancel(context.Background())
	return b
}

// Adopt takes over the connection of a box that an earlier shim made. It
// holds those of its ports that nobody has taken meanwhile: the table leads to
// the box whether they are held or not. The Box is usable in any case.
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
		b.entries = append(b.entries, entryOf(port, address)...)
		errs = append(errs, b.holdAgain(port))
	}
	b.serve(address)
	return b, errors.Join(errs...)
}

// Connect gives the network namespace of process pid the box's end of a pair,
// and leads the box's ports to it. number prefers an address: the next free
// one is taken.
func (b *Box) Connect(pid, number int) error {
	s := b.host.shared
	address, err := b.connect(pid, number)
	if err != nil {
		return failed(err, "connect the box")
	}
	if len(b.Ports) == 0 {
		return nil
	}
	for _, port := range b.Ports {
		b.entries = append(b.entries, entryOf(port, address)...)
	}
	if err := s.publish(b.host.routes, b.entries); err != nil {
		b.entries = nil
		return failed(err, "publish the box's ports")
	}
	b.serve(address)
	return nil
}

// Close takes away what Reserve and Connect made: when it returns the ports are
// free, and nothing leads to the box, which has ended. The pair goes with the
// box's network namespace, which takes the kernel some 20 ms in the
// background. To remove it here would wait for that, and hold up every other
// change of the host's network meanwhile.
func (b *Box) Close() error {
	b.release()
	if b.host.shared == nil {
		return nil // adopted in vain
	}
	if b.index != 0 {
		b.host.forget(b.index)
	}
	if len(b.entries) == 0 {
		return nil
	}
	return errors.Join(unpublish(b.entries), b.untrack())
}

// forget notes an interface that the kernel removes.
func (h *Host) forget(index int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ended) == maxEnded {
		h.ended = h.ended[1:]
	}
	h.ended = append(h.ended, index)
}

// failed classifies what the kernel refuses.
func failed(err error, what string) error {
	switch {
	case fault.Classified(err):
		return err
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT):
		return fault.Wrap(fault.Unsupported, err, "%s: the kernel lacks veth or nftables (sandbox doctor tells which); network None does without", what)
	}
	return fault.Wrap(fault.Upstream, err, "%s", what)
}
