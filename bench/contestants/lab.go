package contestants

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"sandbox/bench/harness"
	"sandbox/core"
	"sandbox/core/options"
)

// Addresses of the two sides of the lab (RFC 5737).
const (
	LabHost  = "198.51.100.1"
	LabWorld = "198.51.100.2"
)

// LabImage is the name by which both sides know the image of five layers.
const LabImage = "localhost/bench:1"

// GuestPort is the port of boxes and containers that is published.
const GuestPort = 5001

// Lab is a host of its own for measurements that need a network. It is a
// network namespace in which boxes and containers are made, connected by a veth
// pair to another one, the world. Nothing passes the machine's interfaces, or
// the machine's firewall.
type Lab struct {
	Host, World harness.Place
	Ours        *Ours
	Podman      *Podman
	volume      string
	port        atomic.Int32 // the last one that was published
	failed      error        // why there is none
}

// Lab returns the lab, which the first call makes. What was made of a lab that
// failed is removed at the end of the run.
func (b *Field) Lab(ctx context.Context) (*Lab, error) {
	if b.lab != nil {
		return b.lab, b.lab.failed
	}
	b.lab = &Lab{volume: filepath.Join(b.Dir, "volume")}
	b.lab.failed = b.lab.prepare(ctx, b)
	return b.lab, b.lab.failed
}

func (l *Lab) prepare(ctx context.Context, b *Field) error {
	l.port.Store(20000)
	var err1, err2 error
	l.Host, err1 = harness.NewNetwork()
	l.World, err2 = harness.NewNetwork()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	archive := filepath.Join(b.Dir, "image.tar")
	if err := errors.Join(l.join(), os.Mkdir(l.volume, 0o755), makeImage(archive, b.Rootfs)); err != nil {
		return err
	}
	l.Ours = openOurs(b, filepath.Join(b.Dir, "lab"), 0)
	if l.Ours.Why == "" {
		if err := l.open(ctx, archive); err != nil {
			return err
		}
	}
	l.Podman = newPodman(ctx, b, l.Host, archive)
	return nil
}

// open starts our shim in the lab's network, by making a first box, and imports
// the image.
func (l *Lab) open(ctx context.Context, archive string) error {
	err := l.Host.Do(func() error {
		box, err := l.Ours.Create(ctx)
		if err != nil {
			return err
		}
		return l.Ours.Remove(ctx, box)
	})
	if err != nil {
		return err
	}
	there, err1 := os.Stat(fmt.Sprintf("/proc/%d/ns/net", l.Ours.Shim.pid))
	here, err2 := l.Host[0].Stat()
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(there, here) {
		return errors.Join(errors.New("the shim of ours is not in the network of the bench"), err)
	}
	_, err = l.Ours.host.Images.Import(ctx, LabImage, archive, nil)
	return err
}

// join connects the two sides by a veth pair.
func (l *Lab) join() error {
	err := l.Host.Do(func() error {
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: "wan"})
		pair.PeerName, pair.PeerNamespace = "wan", netlink.NsFd(l.World[0].Fd())
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		if err := errors.Join(linkUp("lo", ""), linkUp("wan", LabHost+"/24")); err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(LabWorld)})
	})
	if err != nil {
		return fmt.Errorf("making the network of the bench: %w", err)
	}
	return l.World.Do(func() error { return errors.Join(linkUp("lo", ""), linkUp("wan", LabWorld+"/24")) })
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

// NextPort returns a port of the lab's host that was not used before.
func (l *Lab) NextPort() int { return int(l.port.Add(1)) }

// Create makes a box of the image with a network, a volume and a port.
func (l *Lab) Create(ctx context.Context, hostIP string, port int, more ...func(*options.Box)) (box *core.Box, err error) {
	o := options.Defaults()
	o.Image, o.CPUs = LabImage, 2
	o.Volumes = []options.Volume{{HostPath: l.volume, GuestPath: "/volume"}}
	o.Ports = []options.Port{{HostIP: hostIP, HostPort: port, GuestPort: GuestPort, Protocol: options.ProtocolTCP}}
	for _, change := range more {
		change(&o)
	}
	err = l.Host.Do(func() error {
		box, err = l.Ours.CreateWith(ctx, o)
		return err
	})
	return box, err
}

// Publish returns the arguments that give a container of podman the same: the
// volume, and a published port on an address of the host.
func (l *Lab) Publish(hostIP string, port int) []string {
	return []string{"-v", l.volume + ":/volume", "-p", hostIP + ":" + strconv.Itoa(port) + ":" + strconv.Itoa(GuestPort)}
}

// close ends all that runs in the lab. The kernel then removes the rest.
func (l *Lab) close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	return errors.Join(l.Podman.close(ctx), l.Ours.Close(ctx), l.Host.Close(), l.World.Close())
}

// OursToOutput makes a box and runs a command in it, up to the first byte. The
// box's removal is not in the time.
func (l *Lab) OursToOutput(ctx context.Context) (time.Duration, error) {
	port := l.NextPort()
	start := time.Now()
	box, err := l.Create(ctx, "127.0.0.1", port)
	if err != nil {
		return 0, err
	}
	made := time.Since(start)
	t, err := l.Ours.Exec(ctx, box, Hello...)
	return made + t.First, errors.Join(err, l.Ours.Remove(ctx, box))
}

// PodmanToOutput makes a container with podman and runs a command in it, up to
// the first byte. The container's removal is not in the time.
func (l *Lab) PodmanToOutput(ctx context.Context) (time.Duration, error) {
	name, args := l.Podman.Run(l.Publish("127.0.0.1", l.NextPort()), Hello...)
	t, err := l.Podman.command(args...).Run(ctx)
	return t.First, errors.Join(err, l.Podman.Remove(ctx, name))
}
