package shim

import (
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// A client that has hung up has no spare made, even if whoever reads from its connection
// has not noticed yet.
func TestHungUpIsNoClient(t *testing.T) {
	t.Parallel()
	s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	client, conn := wire.NewConn(s[0], "client"), wire.NewConn(s[1], "shim")
	defer conn.Close()
	p := newPool(func() {})
	p.size, p.recent = 1, []shape{{}}
	p.join(conn)
	next, _ := p.plan()
	if next == nil {
		t.Fatal("no spare for a client that is there")
	}
	p.drop(next)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if next, _ := p.plan(); next != nil {
		t.Error("a spare for a client that has hung up")
	}
}
