package wire_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// pair gives a connection and the raw socket of its peer.
func pair(t testing.TB) (*wire.Conn, int) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return wire.NewConn(p[0], "mine"), p[1]
}

func TestFrames(t *testing.T) {
	t.Parallel()
	a, fd := pair(t)
	b := wire.NewConn(fd, "theirs")
	defer a.Close()
	defer b.Close()
	big := strings.Repeat("x", 100_000) // more than one read, less than the socket holds
	if err := a.Send(wire.TypeAttach, wire.Attach{ID: big}, 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := a.Send(wire.TypeStats, nil); err != nil {
		t.Fatal(err)
	}
	f, err := b.Recv()
	if err != nil {
		t.Fatal(err)
	}
	defer f.CloseFDs()
	var got wire.Attach
	if err := f.Decode(&got); err != nil || got.ID != big || len(f.FDs) != 2 || f.Type != wire.TypeAttach {
		t.Errorf("got frame %d, %d descriptors, %v", f.Type, len(f.FDs), err)
	}
	if f, err := b.Recv(); err != nil || f.Type != wire.TypeStats || len(f.Body) != 0 || len(f.FDs) != 0 {
		t.Errorf("got %v, %v", f, err)
	}
	if err := a.Send(wire.TypeAttach, wire.Attach{ID: strings.Repeat("x", wire.MaxBody)}); err == nil {
		t.Error("sent a frame that nobody takes")
	}
}

// FuzzConn receives what a hostile peer sends, with descriptors beside it: it
// neither panics nor keeps a descriptor that nobody took.
func FuzzConn(f *testing.F) {
	frame := func(size uint32, t wire.Type, fds byte, body string) []byte {
		return append(append(binary.BigEndian.AppendUint32(nil, size), byte(t), fds), body...)
	}
	f.Add([]byte{}, 0)
	f.Add(frame(2, wire.TypeStarted, 2, "{}"), 2)
	f.Add(frame(2, wire.TypeStarted, 0, "{}"), 9)
	f.Add(frame(2, wire.TypeStarted, 4, "{}"), 1)
	f.Add(bytes.Repeat(frame(0, wire.TypeGo, 1, ""), 3), 4)
	f.Add(frame(1<<31, wire.TypeExited, 255, "x"), 0)
	f.Add(frame(100, wire.TypeExited, 0, "half"), 0)
	f.Fuzz(func(t *testing.T, data []byte, fds int) {
		if len(data) > 64<<10 { // what the socket holds while nobody reads
			data = data[:64<<10]
		}
		before := descriptors(t)
		conn, peer := pair(t)
		given := make([]int, min(max(fds, 0), 100))
		var oob []byte
		if len(given) > 0 {
			oob = unix.UnixRights(given...) // all of them standard input
		}
		_ = unix.Sendmsg(peer, data, oob, nil, unix.MSG_NOSIGNAL)
		_ = unix.Close(peer)
		for {
			frame, err := conn.Recv()
			if err != nil {
				break
			}
			if len(frame.Body) > len(data) || len(frame.FDs) > wire.MaxFDs {
				t.Errorf("a frame of %d bytes and %d descriptors", len(frame.Body), len(frame.FDs))
			}
			frame.CloseFDs()
		}
		_ = conn.Close()
		if after := descriptors(t); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
