package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// pair returns a connection and the bare socket at its other end.
func pair(t testing.TB) (*wire.Conn, *os.File) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, peer := wire.NewConn(p[0], "conn"), os.NewFile(uintptr(p[1]), "peer")
	t.Cleanup(func() { _, _ = conn.Close(), peer.Close() })
	return conn, peer
}

func frame(size uint32, t wire.Type, fds byte, body string) string {
	return string(binary.BigEndian.AppendUint32(nil, size)) + string([]byte{byte(t), fds}) + body
}

func TestFrames(t *testing.T) {
	t.Parallel()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := wire.NewConn(p[0], "a"), wire.NewConn(p[1], "b")
	defer a.Close()
	defer b.Close()
	// The frame is larger than the socket's buffer, so that both sides need
	// several calls.
	want := wire.Start{Cmd: []string{"sh", strings.Repeat("x", 1<<20)}, Env: map[string]string{"A": "\x01\"é"}, TTY: true}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, send := range []error{
			a.Send(wire.TypeRelease, nil),
			a.Send(wire.TypeStart, want, int(r.Fd()), int(w.Fd())),
			a.Send(wire.TypeStop, wire.Stop{GraceMS: 7}),
		} {
			if send != nil {
				t.Error(send)
			}
		}
	})
	if f, err := b.Recv(); err != nil || f.Type != wire.TypeRelease || len(f.Body) != 0 || len(f.FDs) != 0 {
		t.Errorf("got %v, %v", f, err)
	}
	f, err := b.Recv()
	if err != nil || f.Type != wire.TypeStart || len(f.FDs) != 2 {
		t.Fatalf("got frame %d with %d descriptors, %v", f.Type, len(f.FDs), err)
	}
	var got wire.Start
	if err := f.Decode(&got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the start came changed: %v", err)
	}
	same(t, int(r.Fd()), f.FDs[0])
	same(t, int(w.Fd()), f.FDs[1])
	f.CloseFDs()
	if f, err := b.Recv(); err != nil || f.Type != wire.TypeStop || string(f.Body) != `{"grace_ms":7}` {
		t.Errorf("got %v, %v", f, err)
	}
	wg.Wait()
	_ = a.Close()
	if _, err := b.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the other side's end: %v", err)
	}
}

// TestRecvEndsWithDescriptors checks that a frame with descriptors is received
// without the one behind it, however long it is: poll must report that one.
func TestRecvEndsWithDescriptors(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 4000, 5000, 100_000} {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		conn, peer := wire.NewConn(p[0], "conn"), wire.NewConn(p[1], "peer")
		defer conn.Close()
		defer peer.Close()
		if err := errors.Join(
			peer.Send(wire.TypeStarted, strings.Repeat("x", size), p[1]),
			peer.Send(wire.TypeStop, nil),
		); err != nil {
			t.Fatal(err)
		}
		f, err := conn.Recv()
		if err != nil || len(f.FDs) != 1 || conn.Buffered() {
			t.Errorf("%d bytes: %d descriptors, %v; more was read: %t", size, len(f.FDs), err, conn.Buffered())
		}
		f.CloseFDs()
	}
}

// same checks that two descriptors refer to the same file, and that the second
// one is closed on exec.
func same(t *testing.T, a, b int) {
	t.Helper()
	var sa, sb unix.Stat_t
	if err := errors.Join(unix.Fstat(a, &sa), unix.Fstat(b, &sb)); err != nil || sa.Ino != sb.Ino {
		t.Errorf("not the descriptor that was sent: %v", err)
	}
	if flags, err := unix.FcntlInt(uintptr(b), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("a command would inherit it: flags %d, %v", flags, err)
	}
}

// TestRecvRefuses checks that Recv refuses the frames of a hostile peer.
func TestRecvRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bytes string
		want  error
	}{
		"nothing":                    {"", io.EOF},
		"part of a header":           {"\x00\x00", io.ErrUnexpectedEOF},
		"part of a body":             {frame(10, 1, 0, "{"), io.ErrUnexpectedEOF},
		"a body too large":           {frame(wire.MaxBody+1, 1, 0, ""), wire.ErrProtocol},
		"a body of 4 GiB":            {frame(1<<32-1, 1, 0, ""), wire.ErrProtocol},
		"too many descriptors":       {frame(0, 1, wire.MaxFDs+1, ""), wire.ErrProtocol},
		"descriptors that came not":  {frame(0, 1, 1, ""), wire.ErrProtocol},
		"a large body that is short": {frame(wire.MaxBody, 1, 0, "x"), io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, peer := pair(t)
			if _, err := peer.WriteString(tt.bytes); err != nil {
				t.Fatal(err)
			}
			_ = peer.Close()
			if f, err := conn.Recv(); !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v, want %v", f, err, tt.want)
			}
		})
	}
}

// TestStrayDescriptors checks that descriptors that no frame announced are
// closed, and that a flood of them is refused.
func TestStrayDescriptors(t *testing.T) {
	t.Parallel()
	conn, peer := pair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 20 {
		if err := unix.Sendmsg(int(peer.Fd()), []byte(frame(0, 1, 0, "")), unix.UnixRights(int(w.Fd()), int(w.Fd())), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	_ = peer.Close()
	for err == nil {
		_, err = conn.Recv()
	}
	if !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("got %v, want a protocol error", err)
	}
	_, _ = conn.Close(), w.Close()
	// A read of the pipe meets EOF only if all write ends are closed.
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("a stray descriptor is still open: %d, %v", n, err)
	}
}

// TestTimeout checks that Recv and Send give up on a silent peer.
func TestTimeout(t *testing.T) {
	t.Parallel()
	conn, _ := pair(t)
	if err := conn.SetTimeout(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Recv(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("receive: %v", err)
	}
	var err error
	for range 100 { // until the socket's buffer is full
		if err = conn.Send(wire.TypeStart, strings.Repeat("x", 64<<10)); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("send: %v", err)
	}
}

func TestSendRefuses(t *testing.T) {
	t.Parallel()
	conn, _ := pair(t)
	if err := conn.Send(wire.TypeStart, strings.Repeat("x", wire.MaxBody)); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("a body too large: %v", err)
	}
	if err := conn.Send(wire.TypeStart, func() {}); err == nil {
		t.Error("sent what is no JSON")
	}
}

func FuzzRecv(f *testing.F) {
	f.Add([]byte(frame(2, wire.TypeStarted, 0, "{}") + frame(7, wire.TypeExited, 0, `{"a":1}`)))
	f.Add([]byte(frame(0, wire.TypeConfig, 2, "")))
	f.Add([]byte(frame(1<<31, 0, 255, "x")))
	null, err := os.Open(os.DevNull)
	if err != nil {
		f.Fatal(err)
	}
	defer null.Close()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return // a socket holds no more while nobody reads
		}
		conn, peer := pair(t)
		if err := unix.Sendmsg(int(peer.Fd()), data, unix.UnixRights(int(null.Fd())), nil, 0); len(data) > 0 && err != nil {
			t.Fatal(err)
		}
		_ = peer.Close()
		var taken bytes.Buffer
		for {
			frame, err := conn.Recv()
			if err != nil {
				break
			}
			if len(frame.Body) > wire.MaxBody || len(frame.FDs) > wire.MaxFDs {
				t.Errorf("a frame of %d bytes and %d descriptors", len(frame.Body), len(frame.FDs))
			}
			taken.Write(frame.Body)
			frame.CloseFDs()
		}
		if taken.Len() > len(data) {
			t.Errorf("%d bytes of %d", taken.Len(), len(data))
		}
	})
}
