package boxes

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
)

// patience returns how long a test waits for what is to come: 3 minutes, or the duration
// SANDBOX_TEST_PATIENCE, for machines that are emulated.
func patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SANDBOX_TEST_PATIENCE")); err == nil {
		return d
	}
	return 3 * time.Minute
}

// Await waits until so holds, where nothing tells of it.
func Await(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience()); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited too long for ", what)
		}
	}
}

// AwaitReadable waits until a descriptor is readable; one of a process (pidfd) is from
// its end on. Go's own signals interrupt poll(2), which then does not begin anew by itself.
func AwaitReadable(t testing.TB, what string, fd int) {
	t.Helper()
	deadline := time.Now().Add(patience())
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, time.Until(deadline)).Milliseconds()))
		switch {
		case n == 1:
			return
		case errors.Is(err, unix.EINTR):
		default:
			t.Fatalf("waited too long for %s: %v", what, err)
		}
	}
}

// AwaitState waits until a box is in a state and returns its record.
func AwaitState(t testing.TB, e core.Engine, id string, want api.BoxStatus) (rec core.Record) {
	t.Helper()
	Await(t, "a box that is "+string(want), func() bool {
		var err error
		if rec, err = e.Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return rec.Status == want
	})
	return rec
}
