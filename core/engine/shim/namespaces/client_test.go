package namespaces

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// TestLateAnswer has an answer come after the client has given up on it. The next request
// gets its own one.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, "engine"), 0o700))
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	givenUp, sent := make(chan struct{}), make(chan struct{})
	serve := func(conn *wire.Conn) {
		defer conn.Close()
		for {
			f, err := conn.Recv()
			var asked wire.Listen
			if err != nil || f.Decode(&asked) != nil {
				return
			}
			port := int(asked.Address.Port())
			if port == 1 {
				<-givenUp
			}
			_ = conn.Send(wire.TypeListening, wire.Listening{Port: port}, int(null.Fd()))
			if port == 1 {
				close(sent)
			}
		}
	}
	var conns sync.WaitGroup
	defer conns.Wait()
	defer listenOutside(t, home, func(l *wire.Listener) {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			conns.Go(func() { serve(conn) })
		}
	})()
	conn, err := dial(home)
	must(t, err)
	must(t, conn.SetTimeout(time.Millisecond)) // the answer comes only when this has passed
	c := &Client{home: home, conn: conn}
	defer func() { _ = c.conn.Close() }()
	listen := func(port uint16) (int, error) {
		f, got, err := c.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), port), false)
		if err == nil {
			_ = f.Close()
		}
		return got, err
	}

	if _, err := listen(1); err == nil {
		t.Error("there is an answer that was not sent")
	}
	close(givenUp)
	<-sent
	if got, err := listen(2); err != nil || got != 2 {
		t.Errorf("got the answer to request %d (%v), want that to 2", got, err)
	}
}

// TestOtherAnswer has an answer come that belongs to another request.
func TestOtherAnswer(t *testing.T) {
	t.Parallel()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	conn, peer := wire.NewConn(p[0], "conn"), wire.NewConn(p[1], "peer")
	defer conn.Close()
	defer peer.Close()
	must(t, peer.Send(wire.TypeListening, wire.Listening{}))
	if _, err := request(conn, wire.TypeUplink, nil); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("got %v, want a protocol error", err)
	}
}
