package guest

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// noTree is a tree that fails to make groups, so that no command is started.
type noTree struct{}

func (noTree) make(string) (group, error) { return nil, errors.New("no groups in a test") }

func newGuest(t testing.TB) *guest {
	t.Helper()
	g := &guest{tree: noTree{}, execs: map[string]*exec{}, children: map[int]*exec{}}
	var err error
	if g.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.null.Close() })
	if g.pts, err = unix.Open("/dev/pts", unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(g.pts) })
	return g
}

// exchange returns all frames that init answers to these bytes. It reads while init
// answers: a socket holds fewer frames than a list of all execs has.
func exchange(t *testing.T, g *guest, data []byte) []wire.Frame {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	peer := wire.NewConn(p[1], "reader")
	defer peer.Close()
	_, _ = unix.SendmsgN(p[1], data, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	_ = unix.Shutdown(p[1], unix.SHUT_WR)
	var init sync.WaitGroup
	init.Go(func() { g.handle(wire.NewConn(p[0], "host")) })
	defer init.Wait()
	var frames []wire.Frame
	for {
		f, err := peer.Recv()
		if err != nil {
			return frames
		}
		f.CloseFDs()
		frames = append(frames, f)
	}
}

// TestListOfAll asks for a list of as many execs as are remembered.
func TestListOfAll(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	for range wire.MaxExecs {
		exchange(t, g, frame(wire.TypeStart, `{"cmd":["true"]}`))
	}
	list := exchange(t, g, frame(wire.TypeExecs, ""))
	if len(list) != wire.MaxExecs+1 || list[wire.MaxExecs].Type != wire.TypeListed {
		t.Errorf("%d frames", len(list))
	}
}

// A reader that has left before init could answer has released the output all the same.
func TestReleasedAndLeft(t *testing.T) {
	t.Parallel()
	g := newGuest(t)
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, asked := range [][]byte{frame(wire.TypeStart, `{"cmd":["true"]}`), frame(wire.TypeRelease, ``)} {
		if _, err := unix.Write(p[1], asked); err != nil {
			t.Fatal(err)
		}
	}
	_ = unix.Close(p[1])
	g.handle(wire.NewConn(p[0], "host"))
	for _, e := range g.execs {
		if e.files.out >= 0 || e.files.err >= 0 {
			t.Errorf("its descriptors are still there: %+v", e.files)
		}
	}
	if len(g.execs) != 1 {
		t.Errorf("%d execs were started", len(g.execs))
	}
}

func frame(t wire.Type, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body))) //nolint:gosec // short
	return append(append(b, byte(t), 0), body...)
}

// FuzzGuestRequest sends init a request and bytes that follow on its connection.
// Init must answer with valid frames and go on.
func FuzzGuestRequest(f *testing.F) {
	long := strings.Repeat("x", 100_000)
	for _, data := range [][]byte{
		frame(wire.TypeStart, `{"cmd":["true"]}`), frame(wire.TypeStart, `{"cmd":[]}`), frame(wire.TypeStart, `{"cmd":[""]}`),
		frame(wire.TypeStart, `{"cmd":["`+long[:60_000]+`"]}`),
		frame(wire.TypeStart, `{"cmd":["x"],"tty":true,"cols":-1,"rows":99999999}`),
		frame(wire.TypeStart, `{"cmd":["x"],"stdin":true,"user":"nobody:x","timeout_ms":-1,"working_dir":"../.."}`),
		append(frame(wire.TypeStart, `{"cmd":["x"]}`), frame(wire.TypeSignal, `{"signal":9}`)...),
		append(frame(wire.TypeStart, `{"cmd":["x"]}`), frame(wire.TypeCancel, `{"grace_ms":-1}`)...),
		append(frame(wire.TypeStart, `{"cmd":["x"]}`), frame(wire.TypeRelease, ``)...),
		append(frame(wire.TypeStart, `{"cmd":["x"],"stdin":true,"keep_stdin":true}`), frame(wire.TypeCloseStdin, ``)...),
		frame(wire.TypeTransfer, `{"in":true}`), frame(wire.TypeTransfer, `1`), frame(wire.TypeExecs, ``), frame(wire.TypeFind, `{"id":"exec_x"}`), frame(wire.TypeAwait, `{"id":"exec_x"}`),
		frame(wire.TypeEnd, `{"id":"exec_x","grace_ms":-1}`), frame(wire.TypeFind, `[]`), frame(wire.TypeEnd, `{"id":1}`),
		frame(wire.TypeKill, `{"id":"exec_x","signal":9}`), frame(wire.TypeKill, `{"signal":"9"}`),
		frame(wire.TypeAttach, `{"id":"exec_x"}`), frame(wire.TypeAttach, `7`), frame(wire.TypeStats, ``), frame(200, `{}`), {0, 0},
		frame(wire.TypeIdle, `{}`), frame(wire.TypeIdle, `{"since":[7]}`), frame(wire.TypeSupervise, `{}`), frame(wire.TypePause, ``), frame(wire.TypeResume, ``), frame(wire.TypeReach, `{"port":-1}`), frame(wire.TypeResize, `{"cols":-1}`),
	} {
		f.Add(data)
	}
	g := newGuest(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4 && wire.Type(data[4]) == wire.TypeStop {
			t.Skip("would end all processes, here of the host")
		}
		for i, answer := range exchange(t, g, data) {
			switch answer.Type {
			case wire.TypeStarted, wire.TypeStatsIs, wire.TypeError, wire.TypeExited, wire.TypeExec, wire.TypeListed, wire.TypeIdleIs, wire.TypeMain, wire.TypeReady:
			default:
				t.Errorf("answer %d is frame %d", i, answer.Type)
			}
		}
		if last := exchange(t, g, frame(wire.TypeStats, "")); len(last) != 1 || last[0].Type != wire.TypeStatsIs {
			t.Errorf("afterwards it answers %v", last)
		}
		if len(g.execs) > wire.MaxExecs+1 || len(g.children) != 0 {
			t.Errorf("%d execs, %d children", len(g.execs), len(g.children))
		}
	})
}
