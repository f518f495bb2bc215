package shim

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// When the queue is full, further clients get an error; a client that waits and
// hangs up makes room in the queue.
func TestLine(t *testing.T) {
	t.Parallel()
	l := newQueue()
	atOnce := cap(l.working)
	for range atOnce {
		if err := l.enter(nil); err != nil { // a client that need not wait is not watched
			t.Fatal(err)
		}
	}
	askers := make([]*wire.Conn, maxWaiting)
	entered := make(chan error, maxWaiting)
	for i := range askers {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		askers[i] = wire.NewConn(p[0], "asker")
		asker := wire.NewConn(p[1], "shim")
		defer asker.Close()
		go func() { entered <- l.enter(asker) }()
	}
	for len(l.all) < cap(l.all) {
		runtime.Gosched() // until all have entered the queue
	}
	if err := l.enter(nil); !fault.Is(err, fault.ResourceExhausted) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("one more: %v", err)
	}
	for _, c := range askers {
		_ = c.Close()
	}
	for range askers {
		if err := <-entered; !fault.Is(err, fault.Canceled) {
			t.Errorf("hung up: %v", err)
		}
	}
	for range atOnce {
		l.leave()
	}
	if len(l.all) != 0 || len(l.working) != 0 {
		t.Errorf("left in the queue: %d, %d at work", len(l.all), len(l.working))
	}
}
