package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

// The tests of networks have a host of their own: a network namespace in which
// the shim runs, and behind a veth pair another one, the world. Nothing
// passes the interfaces of the machine.
const (
	hostIP, worldIP   = "198.51.100.1", "198.51.100.2"
	hostIP6, worldIP6 = "2001:db8::1", "2001:db8::2"
	metadataIP        = "169.254.169.254"
)

// space is a network namespace.
type space struct{ netns.NsHandle }

// do runs f in the namespace.
func (s space) do(t *testing.T, f func()) {
	t.Helper()
	err := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		var e error
		defer func() { err <- e }()
		if e = netns.Set(s.NsHandle); e == nil {
			f()
		}
	}()
	if e := <-err; e != nil {
		t.Fatal("enter a network namespace: ", e)
	}
}

func newSpace(t *testing.T) space {
	t.Helper()
	var s space
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		s.NsHandle, err = netns.New()
	}()
	<-done
	if err != nil {
		t.Fatal("needs root: ", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// boxSpace is a box's.
func boxSpace(t *testing.T, rec core.Record) space {
	t.Helper()
	ns, err := netns.GetFromPid(rec.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return space{ns}
}

// dial says hello over TCP or UDP and returns the answer. open says whether there should be
// one.
func (s space) dial(t *testing.T, network, address string, open bool) (answer string, err error) {
	t.Helper()
	timeout := 700 * time.Millisecond // local networks: what does not answer was dropped
	if open {
		timeout = 10 * time.Second // on a busy host
	}
	s.do(t, func() {
		var c net.Conn
		if c, err = net.DialTimeout(network, address, timeout); err != nil {
			return
		}
		defer c.Close()
		if err = c.SetDeadline(time.Now().Add(timeout)); err != nil {
			return
		}
		if _, err = io.WriteString(c, "hello\n"); err != nil {
			return
		}
		b := make([]byte, 256)
		var n int
		n, err = c.Read(b)
		answer = string(b[:n])
	})
	return answer, err
}

// listen answers each message over TCP and UDP with the address it came from.
func (s space) listen(t *testing.T, ip string, port int) int {
	t.Helper()
	s.do(t, func() {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(ip), Port: port})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = l.Close() })
		port = l.Addr().(*net.TCPAddr).Port
		u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip), Port: port})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = u.Close() })
		go answerTCP(l)
		go answerUDP(u)
	})
	return port
}

func answerTCP(l *net.TCPListener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 64))
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		_, _ = io.WriteString(c, host)
		_ = c.Close()
	}
}

func answerUDP(u *net.UDPConn) {
	b := make([]byte, 2048)
	for {
		_, from, err := u.ReadFromUDP(b)
		if err != nil {
			return
		}
		_, _ = u.WriteToUDP([]byte(from.IP.String()), from)
	}
}

// network is a host with a world behind it.
type network struct {
	host, world space
	engine      *engine.Client
	home, root  string
	made        atomic.Int64
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{host: newSpace(t), world: newSpace(t), home: t.TempDir(), root: rootfs.Busybox(t)}
	n.host.do(t, func() {
		must(t, ipUp("lo"))
		must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0)) // a new namespace has the machine's
		pair := netlink.NewVeth(netlink.LinkAttrs{Name: "wan", MTU: 1400})
		pair.PeerName, pair.PeerNamespace = "wan", netlink.NsFd(n.world.NsHandle)
		must(t, netlink.LinkAdd(pair))
		must(t, ipUp("wan", hostIP+"/24", hostIP6+"/64"))
	})
	n.world.do(t, func() {
		must(t, ipUp("lo"))
		must(t, ipUp("wan", worldIP+"/24", worldIP6+"/64", metadataIP+"/32"))
	})
	n.host.do(t, func() {
		_, err := netlink.LinkByName("wan") // since Linux 6.8 it sends from then on, and not only soon
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(worldIP)}))
		must(t, netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(worldIP6)}))
	})
	var err error
	n.engine, err = engine.Open(engine.Config{Home: n.home, HelperDir: programs.Dir()})
	must(t, err)
	t.Cleanup(func() { _ = n.engine.Close() })
	return n
}

func ipUp(name string, addresses ...string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	errs := []error{netlink.LinkSetUp(link)}
	for _, a := range addresses {
		parsed, err := netlink.ParseAddr(a)
		if err != nil {
			return err
		}
		parsed.Flags = unix.IFA_F_NODAD
		errs = append(errs, netlink.AddrAdd(link, parsed))
	}
	return errors.Join(errs...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		panic(err)
	}
}

// box makes a box on the network's host and removes it with the test.
func (n *network) box(t *testing.T, ports ...options.Port) (core.Record, error) {
	t.Helper()
	o := options.Defaults()
	o.RootfsPath, o.AutoRemove, o.CPUs, o.MemoryMiB, o.Ports = n.root, false, 1, 64, ports
	var rec core.Record
	var err error
	n.host.do(t, func() {
		rec, err = n.engine.Create(context.Background(), core.CreateRequest{ID: boxes.ID(n.home, int(n.made.Add(1))), Options: o, Image: core.Image{Layers: []string{n.root}}})
	})
	if err == nil {
		t.Cleanup(func() { n.remove(t, rec.ID) })
	}
	return rec, err
}

func (n *network) mustBox(t *testing.T, ports ...options.Port) core.Record {
	t.Helper()
	rec, err := n.box(t, ports...)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func (n *network) remove(t *testing.T, id string) {
	t.Helper()
	n.host.do(t, func() {
		if err := n.engine.Remove(context.Background(), id, true); err != nil && !fault.Is(err, fault.BoxNotFound) {
			t.Error(err)
		}
	})
}

// ownIP is the address of the box's end.
func (s space) ownIP(t *testing.T) (ip string) {
	t.Helper()
	s.do(t, func() {
		link, err := netlink.LinkByName("eth0")
		must(t, err)
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
		must(t, err)
		ip = addresses[0].IP.String()
		if link.Attrs().MTU != 1400 {
			t.Errorf("MTU %d, want the host's 1400", link.Attrs().MTU)
		}
	})
	return ip
}

func TestNetworkOut(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	rec := n.mustBox(t)
	box := boxSpace(t, rec)
	box.ownIP(t)
	for _, tt := range []struct{ network, ip, from string }{
		{"tcp", worldIP, hostIP}, {"udp", worldIP, "::ffff:" + hostIP}, {"tcp", worldIP6, hostIP6}, {"udp", worldIP6, hostIP6},
	} {
		got, err := box.dial(t, tt.network, net.JoinHostPort(tt.ip, fmt.Sprint(port)), true)
		if err != nil || !net.ParseIP(got).Equal(net.ParseIP(tt.from)) {
			t.Errorf("%s to %s: came from %q, want %s; %v", tt.network, tt.ip, got, tt.from, err)
		}
	}
	say := fmt.Sprintf("echo hello | nc %s %d", worldIP, port)
	out, status := boxes.Output(t, n.engine, rec.ID, options.Exec{Cmd: []string{"sh", "-c", say}})
	if !strings.HasSuffix(out, hostIP) {
		t.Errorf("a command of the box came from %q: %+v", out, status)
	}
}

func TestNetworkShut(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := n.world.listen(t, "", 0)
	n.host.listen(t, "", port)
	n.host.listen(t, "", port+1)
	n.host.do(t, func() {
		wan, err := netlink.LinkByName("wan")
		must(t, err)
		must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: wan.Attrs().Index, Dst: netlink.NewIPNet(net.ParseIP(metadataIP))}))
	})
	if _, err := n.host.dial(t, "tcp", net.JoinHostPort(metadataIP, fmt.Sprint(port)), true); err != nil {
		t.Fatal("the host itself must reach the metadata service: ", err)
	}
	one, two := n.mustBox(t, options.Port{GuestPort: 7000, Protocol: options.ProtocolTCP, HostIP: "0.0.0.0"}), n.mustBox(t)
	first, second := boxSpace(t, one), boxSpace(t, two)
	first.listen(t, "", 7000)
	ip := first.ownIP(t)
	gate := ip[:strings.Index(ip[3:], ".")+3] + ".0.1" // 10.x.0.1
	published := fmt.Sprint(one.Options.Ports[0].HostPort)
	if got, err := n.host.dial(t, "tcp", ip+":7000", true); err != nil {
		t.Errorf("the host must reach the box: %q, %v", got, err)
	}
	for name, address := range map[string]string{
		"the host":                 net.JoinHostPort(hostIP, fmt.Sprint(port)),
		"the host over IPv6":       net.JoinHostPort(hostIP6, fmt.Sprint(port)),
		"the host's end":           net.JoinHostPort(gate, fmt.Sprint(port)),
		"metadata":                 net.JoinHostPort(metadataIP, fmt.Sprint(port)),
		"another box":              ip + ":7000",
		"another box's published":  net.JoinHostPort(hostIP, published),
		"published at the gateway": net.JoinHostPort(gate, published),
	} {
		for _, proto := range []string{"tcp", "udp"} {
			if got, err := second.dial(t, proto, address, false); err == nil {
				t.Errorf("%s: %s reached over %s: %q", name, address, proto, got)
			}
		}
	}
	// The world finds no box behind the host, but for its published port.
	n.world.do(t, func() {
		must(t, netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(hostIP), Dst: netlink.NewIPNet(net.ParseIP(ip))}))
	})
	if got, err := n.world.dial(t, "tcp", ip+":7000", false); err == nil {
		t.Errorf("the world reached a box: %q", got)
	}
	if _, err := n.world.dial(t, "tcp", net.JoinHostPort(hostIP, published), true); err != nil {
		t.Errorf("the world did not reach a published port: %v", err)
	}
}

// A box that writes its own headers is not heard under another name.
func TestNetworkSpoof(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	var heard *net.UDPConn
	n.world.do(t, func() {
		var err error
		heard, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(worldIP)})
		must(t, err)
	})
	defer heard.Close()
	box, other := boxSpace(t, n.mustBox(t)), boxSpace(t, n.mustBox(t))
	for _, source := range []string{"203.0.113.9", hostIP, other.ownIP(t), "127.0.0.1", box.ownIP(t)} { // the last is its own
		box.do(t, func() { must(t, sendRaw(source, heard.LocalAddr().(*net.UDPAddr))) })
	}
	b := make([]byte, 64)
	must(t, heard.SetReadDeadline(time.Now().Add(30*time.Second)))
	got, _, err := heard.ReadFromUDP(b)
	if err != nil || string(b[:got]) != box.ownIP(t) {
		t.Errorf("heard %q first, want the box's own: %v", b[:got], err)
	}
}

// sendRaw sends a datagram that says its source, from that source.
func sendRaw(source string, to *net.UDPAddr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	size := 8 + len(source)
	p := []byte{0x45, 0, 0, byte(20 + size), 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	p = append(append(p, net.ParseIP(source).To4()...), to.IP.To4()...)
	p = append(p, 0x30, 0x39, byte(to.Port>>8), byte(to.Port), 0, byte(size), 0, 0) // no checksum
	p = append(p, source...)
	err = unix.Sendto(fd, p, 0, &unix.SockaddrInet4{Addr: [4]byte(to.IP.To4())})
	if errors.Is(err, unix.EINVAL) {
		return nil // the box's own kernel refuses it already
	}
	return err
}

func TestPorts(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	rec := n.mustBox(t,
		options.Port{GuestPort: 7000, Protocol: options.ProtocolTCP},
		options.Port{GuestPort: 7000, Protocol: options.ProtocolUDP},
		options.Port{GuestPort: 7000, Protocol: options.ProtocolTCP, HostIP: "0.0.0.0", HostPort: 18080},
		options.Port{GuestPort: 7000, Protocol: options.ProtocolUDP, HostIP: hostIP, HostPort: 18081},
		options.Port{GuestPort: 7000, Protocol: options.ProtocolTCP, HostIP: hostIP6},
	)
	boxSpace(t, rec).listen(t, "", 7000)
	at := func(i int) string { return fmt.Sprint(rec.Options.Ports[i].HostPort) }
	for _, tt := range []struct {
		from    space
		network string
		address string
		open    bool
	}{
		{n.host, "tcp", "127.0.0.1:" + at(0), true},
		{n.host, "tcp", "[::1]:" + at(0), true},
		{n.host, "tcp", hostIP + ":" + at(0), false},
		{n.world, "tcp", hostIP + ":" + at(0), false},
		{n.host, "udp", "127.0.0.1:" + at(1), true},
		{n.world, "udp", hostIP + ":" + at(1), false},
		{n.host, "tcp", "127.0.0.1:18080", true},
		{n.host, "tcp", "[::1]:18080", true},
		{n.host, "tcp", hostIP + ":18080", true},
		{n.world, "tcp", hostIP + ":18080", true},
		{n.world, "udp", hostIP + ":18081", true},
		{n.host, "udp", "127.0.0.1:18081", false},
		{n.world, "tcp", "[" + hostIP6 + "]:" + at(4), true},
	} {
		got, err := tt.from.dial(t, tt.network, tt.address, tt.open)
		if (err == nil) != tt.open {
			t.Errorf("%s %s: %q, %v; want open: %v", tt.network, tt.address, got, err, tt.open)
		}
	}
	n.remove(t, rec.ID)
	if got, err := n.host.dial(t, "tcp", "127.0.0.1:18080", false); err == nil {
		t.Errorf("a port outlives its box: %q", got)
	}
}

// A Udp port that another box takes over is that box's for old clients too.
func TestPortTakenOver(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	port := options.Port{HostIP: hostIP, HostPort: 18120, GuestPort: 7000, Protocol: options.ProtocolUDP}
	var client *net.UDPConn
	n.world.do(t, func() { // what comes from the host itself the kernel forgets with the interface
		var err error
		client, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.ParseIP(hostIP), Port: port.HostPort})
		must(t, err)
	})
	defer client.Close()
	for _, which := range []string{"first", "second"} {
		t.Run(which, func(t *testing.T) { // at its end nothing of this test holds the box's network
			boxSpace(t, n.mustBox(t, port)).listen(t, "", 7000)
			if err := ask(client); err != nil {
				t.Error("the box has the port, and does not answer: ", err)
			}
		})
	}
}

// ask sends until there is an answer: a datagram may get lost on its way.
func ask(c *net.UDPConn) (err error) {
	for range 20 {
		if _, err := io.WriteString(c, "hello"); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			return err
		}
		if _, err = c.Read(make([]byte, 64)); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return err
}

func TestPortRefused(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	taken := n.host.listen(t, "127.0.0.1", 0)
	other := n.mustBox(t, options.Port{GuestPort: 80, Protocol: options.ProtocolTCP}).Options.Ports[0]
	for name, tt := range map[string]struct {
		ports []options.Port
		want  fault.Kind
	}{
		"a program's":      {[]options.Port{{HostPort: taken, GuestPort: 1, Protocol: options.ProtocolTCP}}, fault.PortInUse},
		"a program's, Udp": {[]options.Port{{HostPort: taken, GuestPort: 1, Protocol: options.ProtocolUDP}}, fault.PortInUse},
		"another box's":    {[]options.Port{other}, fault.PortInUse},
		"everywhere":       {[]options.Port{{HostIP: "0.0.0.0", HostPort: taken, GuestPort: 1, Protocol: options.ProtocolTCP}}, fault.PortInUse},
		"twice": {[]options.Port{
			{HostPort: 18090, GuestPort: 1, Protocol: options.ProtocolTCP}, {HostPort: 18090, GuestPort: 2, Protocol: options.ProtocolTCP},
		}, fault.PortInUse},
		"no address of ours": {[]options.Port{{HostIP: "203.0.113.1", GuestPort: 1, Protocol: options.ProtocolTCP}}, fault.InvalidArgument},
		"Udp over IPv6":      {[]options.Port{{HostIP: "::1", GuestPort: 1, Protocol: options.ProtocolUDP}}, fault.Unsupported},
	} {
		if _, err := n.box(t, tt.ports...); !fault.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	// Nothing of a refused box is left: its ports are free.
	n.mustBox(t, options.Port{HostPort: 18090, GuestPort: 1, Protocol: options.ProtocolTCP})
}

// remains lists what boxes have left on the host.
func (n *network) remains(t *testing.T, table bool) (left []string) {
	t.Helper()
	n.host.do(t, func() {
		all, err := netlink.LinkList()
		must(t, err)
		for _, l := range all {
			if strings.HasPrefix(l.Attrs().Name, "sbx") {
				left = append(left, l.Attrs().Name)
			}
		}
		c, err := nftables.New()
		must(t, err)
		tables, err := c.ListTables()
		must(t, err)
		for _, tb := range tables {
			if table {
				left = append(left, "table "+tb.Name)
			}
			sets, err := c.GetSets(tb)
			must(t, err)
			for _, s := range sets {
				elements, err := c.GetSetElements(s)
				must(t, err)
				if s.IsMap && len(elements) > 0 {
					left = append(left, fmt.Sprintf("%d entries of %s", len(elements), s.Name))
				}
			}
		}
		routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
		must(t, err)
		for _, r := range routes {
			if r.Dst != nil && r.Dst.IP[0] == 10 {
				left = append(left, "route "+r.String())
			}
		}
	})
	return left
}

// nothingLeft waits for the kernel, which removes the interfaces of boxes that
// have ended by and by. All else has to be gone at once.
func (n *network) nothingLeft(t *testing.T) {
	t.Helper()
	for _, left := range n.remains(t, false) {
		if !strings.HasPrefix(left, "sbx") && !strings.HasPrefix(left, "route") {
			t.Error("left behind: ", left)
		}
	}
	boxes.Await(t, "the interfaces to go", func() bool { return n.remains(t, false) == nil })
}

func TestNetworksLeaveNothing(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	var wg sync.WaitGroup
	todo := make(chan int, 50)
	for i := range 50 {
		todo <- i
	}
	close(todo)
	for range 8 {
		wg.Go(func() {
			for range todo {
				rec, err := n.box(t, options.Port{GuestPort: 80, Protocol: options.ProtocolTCP}, options.Port{GuestPort: 80, Protocol: options.ProtocolUDP})
				if err != nil {
					t.Error(err)
					continue
				}
				n.remove(t, rec.ID)
			}
		})
	}
	wg.Wait()
	n.nothingLeft(t)
	n.gone(t)
}

// gone waits for the shim's end, and wants the host as it was.
func (n *network) gone(t *testing.T) {
	t.Helper()
	pid := boxes.ShimPID(t, n.home)
	must(t, n.engine.Close())
	awaitEnd(t, pid)
	n.asBefore(t)
}

// asBefore wants the host as it was before there was a box.
func (n *network) asBefore(t *testing.T) {
	t.Helper()
	if left := n.remains(t, true); left != nil {
		t.Error("left behind: ", left)
	}
	n.host.do(t, func() {
		for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
			if v, err := os.ReadFile("/proc/sys/net/" + name); err != nil || string(v) != "0\n" {
				t.Errorf("%s is %q, %v", name, v, err)
			}
		}
		var st unix.Stat_t
		must(t, unix.Stat("/proc/thread-self/ns/net", &st))
		if left, err := filepath.Glob(fmt.Sprintf("/run/sandbox-network-%d*", st.Ino)); err != nil || left != nil {
			t.Error("files in /run are there: ", left, err)
		}
	})
}

func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	must(t, err)
	defer unix.Close(fd)
	boxes.AwaitReadable(t, "the end of the shim", fd)
}

// The shim is killed: ports lead to their box all the same, the next shim
// takes them over, and takes them away.
func TestNetworkShimKilled(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	rec := n.mustBox(t, options.Port{GuestPort: 7000, Protocol: options.ProtocolTCP})
	boxSpace(t, rec).listen(t, "", 7000)
	port := rec.Options.Ports[0]
	pid := boxes.ShimPID(t, n.home)
	must(t, unix.Kill(pid, unix.SIGKILL))
	awaitEnd(t, pid)
	four, six := fmt.Sprintf("127.0.0.1:%d", port.HostPort), fmt.Sprintf("[::1]:%d", port.HostPort)
	if _, err := n.host.dial(t, "tcp", four, true); err != nil {
		t.Error("without a shim: ", err)
	}
	if _, err := n.box(t, port); !fault.Is(err, fault.PortInUse) { // starts the next one
		t.Errorf("got %v, want that the port is in use", err)
	}
	for _, address := range []string{four, six} {
		if _, err := n.host.dial(t, "tcp", address, true); err != nil {
			t.Errorf("%s with the next shim: %v", address, err)
		}
	}
	n.remove(t, rec.ID)
	n.gone(t) // also the interface, which the sockets of this test have kept
}
