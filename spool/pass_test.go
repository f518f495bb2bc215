package spool

import (
	"bytes"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPassed puts output into a socket with sendfile(2) and reads it from there only
// when its space was freed: nothing of it may have changed.
func TestPassed(t *testing.T) {
	t.Parallel()
	const size = 3 << 20 // a socket takes more than that without its reader
	h := newHome(t, 200<<10)
	e, start := h.gated(t, `head -c 3145728 /dev/zero | tr '\0' x`)
	a, err := e.Attach([2]int64{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	start()
	to, from := connection(t)
	raw, err := to.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	send := func(p Piece) (err error) {
		at := p.At
		return raw.Control(func(fd uintptr) {
			for at < p.At+p.Size && err == nil {
				_, err = unix.Sendfile(int(fd), int(p.File.Fd()), &at, int(p.At+p.Size-at))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for ended := false; !ended; ended, _ = a.Ended() {
		if err := a.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Pass(64<<10, send); err != nil {
			t.Fatal(err)
		}
	}
	if e.out.index.dropped == 0 {
		t.Error("nothing was dropped")
	}
	_ = to.Close()
	got, err := io.ReadAll(from)
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("x"), size)) {
		t.Errorf("%d bytes came, %d of them are 0, %v", len(got), bytes.Count(got, []byte{0}), err)
	}
}

// connection returns the two ends of a connection over TCP.
func connection(t *testing.T) (to, from *net.TCPConn) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if to, err = net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr)); err == nil {
		from, err = l.AcceptTCP()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = to.Close(), from.Close() })
	return to, from
}
