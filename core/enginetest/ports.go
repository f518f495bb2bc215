package enginetest

import (
	"testing"

	"sandbox/core/fault"
)

// ports tests what a port refuses: where nobody listens, what is no port, and boxes
// that do not run.
func ports(t *testing.T, s *suite) {
	ctx := s.context(t)
	box := s.box(t)
	connect := func(port int, refused fault.Kind) {
		t.Helper()
		conn, err := box.Connect(ctx, port)
		if err == nil {
			_ = conn.Close()
		}
		want(t, err, refused)
	}
	connect(1, fault.PortUnreachable)
	for _, port := range []int{0, -1, 65536} {
		connect(port, fault.InvalidArgument)
	}
	if !s.lacks(Pause) {
		if _, err := box.Pause(ctx, false); err != nil {
			t.Fatal(err)
		}
		connect(1, fault.InvalidState)
	}
	if s.stops(t, box) {
		connect(1, fault.InvalidState)
	}
	if err := box.Remove(ctx, true); err != nil {
		t.Fatal(err)
	}
	connect(1, fault.BoxNotFound)
}
