package shards

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// TestPort wants a port to be a cluster's own while none of its servers listens on it:
// another cluster that took it would answer in the place of this one. So many ports
// would hardly all differ if the kernel let clusters share them.
func TestPort(t *testing.T) {
	t.Parallel()
	c := &Cluster{dir: t.TempDir()}
	port, err := c.port()
	if err != nil {
		t.Fatal(err)
	}
	listen := func() error {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			err = l.Close()
		}
		return err
	}
	if err := listen(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another took the port: %v", err)
	}
	seen := map[string]bool{port: true}
	for range 500 {
		other, err := c.port()
		if err != nil {
			t.Fatal(err)
		}
		if seen[other] {
			t.Fatalf("port %s was reserved twice", other)
		}
		seen[other] = true
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := listen(); err != nil {
		t.Errorf("the port stays taken: %v", err)
	}
}
