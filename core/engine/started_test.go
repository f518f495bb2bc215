package engine

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// FuzzStarted has a hostile init answer a start: with any frame, and any kinds
// of descriptors (p: a pipe, others: no stream). Only pipes are taken, as many
// as were asked for, and nothing is kept of what was refused.
func FuzzStarted(f *testing.F) {
	good := []byte(`{"id":"exec_aaaaaaaaaaaaaaaaaaaa","pid":2}`)
	withStdin := []byte(`{"id":"exec_aaaaaaaaaaaaaaaaaaaa","pid":2,"stdin":true}`)
	f.Add(byte(wire.TypeStarted), good, "pp")
	f.Add(byte(wire.TypeStarted), withStdin, "ppp")
	f.Add(byte(wire.TypeStarted), good, "ppp")
	f.Add(byte(wire.TypeStarted), withStdin, "pp")
	f.Add(byte(wire.TypeStarted), good, "pf")
	f.Add(byte(wire.TypeStarted), good, "ds")
	f.Add(byte(wire.TypeStarted), good, "n")
	f.Add(byte(wire.TypeStarted), []byte(`{"id":"../x"}`), "pp")
	f.Add(byte(wire.TypeError), []byte(`{"code":"internal","message":"x"}`), "pp")
	f.Add(byte(wire.TypeStarted), []byte(`[`), "")
	f.Fuzz(func(t *testing.T, kind byte, body []byte, kinds string) {
		before := count(t)
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(p[1])
		conn := wire.NewConn(p[0], "init")
		frame := wire.Frame{Type: wire.Type(kind), Body: body}
		for i := 0; i < len(kinds) && i < wire.MaxFDs; i++ {
			frame.FDs = append(frame.FDs, descriptor(t, kinds[i]))
		}
		proc, err := started(conn, frame)
		if err == nil {
			if want := map[bool]string{false: "pp", true: "ppp"}[err == nil && proc.stdin]; kinds != want && len(kinds) <= wire.MaxFDs {
				t.Errorf("took %q", kinds)
			}
			_ = proc.Release()
		} else {
			frame.CloseFDs()
			_ = conn.Close()
		}
		_ = unix.Close(p[1])
		p[1] = -1
		if after := count(t); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

func descriptor(t *testing.T, kind byte) int {
	t.Helper()
	var p [2]int
	var err error
	switch kind {
	case 'p':
		err = unix.Pipe2(p[:], unix.O_CLOEXEC)
		_ = unix.Close(p[1])
	case 's':
		p[0], err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	case 'd':
		p[0], err = unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	case 'f':
		p[0], err = unix.Open(os.Args[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	default:
		p[0], err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p[0]
}

func count(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
