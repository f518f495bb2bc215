package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/vishvananda/netlink"

	"sandbox/core"
	"sandbox/core/options"
)

// Addresses of the two sides of the lab (RFC 5737).
const (
	labHost  = "198.51.100.1"
	labWorld = "198.51.100.2"
)

// labImage is what both sides call the image of five layers.
const labImage = "localhost/bench:1"

// guestPort is what is published of boxes and containers.
const guestPort = 5001

// lab is a host of its own for what needs a network: a network namespace in
// which boxes and containers are made, and behind a veth pair another one, the
// world. Nothing passes the interfaces of the machine, and no firewall of it.
type lab struct {
	host, world place
	ours        *ours
	podman      *podman
	volume      string
	port        atomic.Int32 // the last that was published
	failed      error        // why there is none
}

// theLab makes the lab when it is first asked for. What was made of one that
// failed goes with the run.
func (b *bench) theLab(ctx context.Context) (*lab, error) {
	if b.lab != nil {
		return b.lab, b.lab.failed
	}
	b.lab = &lab{volume: filepath.Join(b.dir, "volume")}
	b.lab.failed = b.lab.prepare(ctx, b)
	return b.lab, b.lab.failed
}

func (l *lab) prepare(ctx context.Context, b *bench) error {
	l.port.Store(20000)
	var err1, err2 error
	l.host, err1 = newNetwork()
	l.world, err2 = newNetwork()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	archive := filepath.Join(b.dir, "image.tar")
	if err := errors.Join(l.join(), os.Mkdir(l.volume, 0o755), makeImage(archive, b.rootfs)); err != nil {
		return err
	}
	l.ours = openOurs(b, filepath.Join(b.dir, "lab"))
	if l.ours.why == "" {
		if err := l.open(ctx, archive); err != nil {
			return err
		}
	}
	l.podman = newPodman(ctx, b, l.host, archive)
	return nil
}

// open starts the shim of ours in the lab's network, by a first box, and
// imports the image.
func (l *lab) open(ctx context.Context, archive string) error {
	err := l.host.do(func() error {
		box, err := l.ours.create(ctx)
		if err != nil {
			return err
		}
		return l.ours.remove(ctx, box)
	})
	if err != nil {
		return err
	}
	there, err1 := os.Stat(fmt.Sprintf("/proc/%d/ns/net", l.ours.shim.pid))
	here, err2 := l.host[0].Stat()
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(there, here) {
		return errors.Join(errors.New("the shim of ours is not in the network of the bench"), err)
	}
	_, err = l.ours.host.Images.Import(ctx, labImage, archive, nil)
	return err
}

// join leads a veth pair from one side to the other.
func (l *lab) join() error {
	err := l.host.do(func() error {
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: "wan"})
		pair.PeerName, pair.PeerNamespace = "wan", netlink.NsFd(l.world[0].Fd())
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		if err := errors.Join(linkUp("lo", ""), linkUp("wan", labHost+"/24")); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(labWorld)})
	})
	if err != nil {
		return fmt.Errorf("making the network of the bench: %w", err)
	}
	return l.world.do(func() error { return errors.Join(linkUp("lo", ""), linkUp("wan", labWorld+"/24")) })
}

func linkUp(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if address != "" {
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

// nextPort returns a port of the lab's host that nobody has had yet.
func (l *lab) nextPort() int { return int(l.port.Add(1)) }

// create makes a box of the image with a network, a volume and a port.
func (l *lab) create(ctx context.Context, hostIP string, port int, more ...func(*options.Box)) (box *core.Box, err error) {
	o := options.Defaults()
	o.Image, o.CPUs = labImage, 2
	o.Volumes = []options.Volume{{HostPath: l.volume, GuestPath: "/volume"}}
	o.Ports = []options.Port{{HostIP: hostIP, HostPort: port, GuestPort: guestPort, Protocol: options.ProtocolTCP}}
	for _, change := range more {
		change(&o)
	}
	err = l.host.do(func() error {
		box, err = l.ours.make(ctx, o)
		return err
	})
	return box, err
}

// publish is the same for podman, on an address of the host.
func (l *lab) publish(hostIP string, port int) []string {
	return []string{"-v", l.volume + ":/volume", "-p", hostIP + ":" + strconv.Itoa(port) + ":" + strconv.Itoa(guestPort)}
}

// close ends all that is in the lab; the kernel takes the rest with it.
func (l *lab) close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	return errors.Join(l.podman.close(ctx), l.ours.close(ctx), l.host.close(), l.world.close())
}
