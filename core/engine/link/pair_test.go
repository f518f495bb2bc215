package link_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/link"
	"sandbox/core/engine/wire"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// both returns settings of TLS for both sides, which verify each other.
var both = sync.OnceValues(func() (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"box"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	own := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	server = &tls.Config{
		Certificates: own, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		DynamicRecordSizingDisabled: true, SessionTicketsDisabled: true,
	}
	client = &tls.Config{
		Certificates: own, RootCAs: pool, ServerName: "box", MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true,
	}
	return server, client
})

// world is a box end with a fake init, behind a proxy.
type world struct {
	t     testing.TB
	init  *fakeInit
	proxy *proxy
	late  time.Duration // how long the host end takes to close a line
}

// lateConn is a connection whose close takes a while.
type lateConn struct {
	net.Conn
	late time.Duration
}

func (c lateConn) Close() error {
	time.Sleep(c.late)
	return c.Conn.Close()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return makeWorld(t, false)
}

// makeWorld returns a world, plain without TLS: only so a line that carries a few bytes
// gets anything done.
func makeWorld(t testing.TB, plain bool) *world {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, init: newInit(t)}
	w.proxy = newProxy(t, l.Addr().String(), plain)
	if server, _ := both(); !plain {
		l = tls.NewListener(l, server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = link.Serve(ctx, l, w.init.connect)
	}()
	t.Cleanup(func() {
		cancel()
		<-served
	})
	return w
}

// host returns a new host end behind the proxy, and directHost one that needs none.
func (w *world) host() *link.Host { return w.hostAt(w.proxy.addr) }

func (w *world) directHost() *link.Host { return w.hostAt(w.proxy.to) }

func (w *world) hostAt(addr string) *link.Host {
	h := link.NewHost(func(ctx context.Context) (net.Conn, error) {
		_, client := both()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		if w.proxy.plain {
			return conn, nil
		}
		c := tls.Client(conn, client)
		if err := c.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		w.proxy.arm(conn.LocalAddr().String())
		return lateConn{c, w.late}, nil
	})
	w.t.Cleanup(func() { _ = h.Close() })
	return h
}

// caller is the client's side of an exec.
type caller struct {
	t    testing.TB
	conn *wire.Conn
	exec wire.Exec
	out  *os.File
	err  *os.File
	in   *os.File
}

func connect(t testing.TB, h *link.Host) *wire.Conn {
	t.Helper()
	for try := 0; ; try++ {
		conn, err := h.Connect(context.Background(), true)
		if err == nil {
			return conn
		}
		if try > 20 { // the line may be cut before it stands
			t.Fatal(err)
		}
	}
}

// start starts a command over a new connection.
func start(t testing.TB, h *link.Host, r wire.Start) *caller {
	t.Helper()
	return begin(t, h, wire.TypeStart, r)
}

func attach(t testing.TB, h *link.Host, r wire.Attach) *caller {
	t.Helper()
	return begin(t, h, wire.TypeAttach, r)
}

// attachOnceCut attaches when the box end has seen that the line of the reader before was
// cut: until then it says that the exec has another reader.
func attachOnceCut(t testing.TB, h *link.Host, r wire.Attach) *caller {
	t.Helper()
	for {
		conn := connect(t, h)
		if err := conn.Send(wire.TypeAttach, r); err != nil {
			t.Fatal(err)
		}
		f, err := conn.Recv()
		if err == nil && f.Type == wire.TypeError && t.Context().Err() == nil {
			_ = conn.Close()
			continue
		}
		return begun(t, conn, f, err)
	}
}

func begin(t testing.TB, h *link.Host, typ wire.Type, r any) *caller {
	t.Helper()
	return beginOn(t, connect(t, h), typ, r)
}

func beginOn(t testing.TB, conn *wire.Conn, typ wire.Type, r any) *caller {
	t.Helper()
	if err := conn.Send(typ, r); err != nil {
		t.Fatal(err)
	}
	f, err := conn.Recv()
	return begun(t, conn, f, err)
}

// begun returns the caller of an exec, whose first frame was received with err.
func begun(t testing.TB, conn *wire.Conn, f wire.Frame, err error) *caller {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if f.Type != wire.TypeStarted {
		t.Fatalf("got frame %d: %s", f.Type, f.Body)
	}
	c := &caller{t: t, conn: conn}
	if err := f.Decode(&c.exec); err != nil {
		t.Fatal(err)
	}
	slots := []**os.File{&c.out}
	if !c.exec.TTY {
		slots = append(slots, &c.err)
	}
	if c.exec.Stdin && !c.exec.TTY {
		slots = append(slots, &c.in)
	}
	if len(slots) != len(f.FDs) {
		t.Fatalf("got %d descriptors, want %d", len(f.FDs), len(slots))
	}
	for i, fd := range f.FDs {
		*slots[i] = file(fd)
	}
	if c.exec.TTY {
		c.in = c.out
	}
	return c
}

// exit waits for the end of the command.
func (c *caller) exit() api.ExitStatus {
	c.t.Helper()
	f, err := c.conn.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	var s api.ExitStatus
	if err := f.Decode(&s); err != nil || f.Type != wire.TypeExited {
		c.t.Fatalf("got frame %d: %s (%v)", f.Type, f.Body, err)
	}
	return s
}

// leave sends the last request and closes everything.
func (c *caller) leave(t wire.Type) {
	_ = c.conn.Send(t, nil)
	c.close()
}

func (c *caller) close() {
	for _, f := range []*os.File{c.out, c.err, c.in} {
		if f != nil {
			_ = f.Close()
		}
	}
	_ = c.conn.Close()
}

// waiting returns how many bytes are in a pipe.
func waiting(f *os.File) int {
	rc, _ := f.SyscallConn()
	n := 0
	_ = rc.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}
