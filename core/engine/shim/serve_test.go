package shim

import (
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// TestLateClient wants a client that comes when the shim is about to go to be disconnected
// before it is greeted: it starts another shim then.
func TestLateClient(t *testing.T) {
	t.Parallel()
	s, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	client := wire.NewConn(s[0], "client")
	defer client.Close()
	k := &keeper{idle: newIdle(lingering), pool: newPool(func() {})}
	k.idle.end()
	k.admit(wire.NewConn(s[1], "shim"))
	if f, err := client.Recv(); !wire.CutOff(err) {
		t.Errorf("got frame %d, %v", f.Type, err)
	}
}
