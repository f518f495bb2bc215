package inits

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/options"
)

func frame(t wire.Type, fds byte, body string) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return append(append(head, byte(t), fds), body...)
}

// answered returns the process or failure that the host gets from an init that
// answers a start with these bytes and descriptors and sends nothing more.
func answered(t testing.TB, o options.Exec, answer []byte, fds ...int) (*core.Process, error) {
	t.Helper()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if err := unix.Sendmsg(p[1], answer, rights, nil, 0); err != nil {
		t.Fatal(err)
	}
	// Init's side can still receive what the host sends, but sends no more.
	if err := unix.Shutdown(p[1], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(p[1]) })
	conn := wire.NewConn(p[0], "init")
	process, err := New(nil, false).run(context.Background(), conn, o)
	if err != nil {
		_ = conn.Close()
	}
	return process, err
}

// open opens a file and closes it once the test and its subtests have ended.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestHostileInit checks that the host refuses the answers of an init that the
// box has taken over.
func TestHostileInit(t *testing.T) {
	t.Parallel()
	file, null := open(t, "/etc/passwd"), open(t, os.DevNull)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	pipe := int(r.Fd())
	started := func(n byte) []byte { return frame(wire.TypeStarted, n, `{"id":"exec_a","pid":2}`) }
	for name, tt := range map[string]struct {
		exec   options.Exec
		answer []byte
		fds    []int
	}{
		"a file for a pipe":       {options.Exec{}, started(2), []int{pipe, int(file.Fd())}},
		"a device for a pipe":     {options.Exec{}, started(2), []int{int(null.Fd()), pipe}},
		"a pipe for a terminal":   {options.Exec{TTY: true}, started(1), []int{pipe}},
		"a device for a terminal": {options.Exec{TTY: true}, started(1), []int{int(null.Fd())}},
		"too few descriptors":     {options.Exec{}, started(1), []int{pipe}},
		"too many descriptors":    {options.Exec{}, started(3), []int{pipe, pipe, pipe}},
		"none":                    {options.Exec{}, started(0), nil},
		"another frame":           {options.Exec{}, frame(wire.TypeStopped, 0, ""), nil},
		"no JSON":                 {options.Exec{}, frame(wire.TypeStarted, 2, "{"), []int{pipe, pipe}},
		"a wrong type":            {options.Exec{}, frame(wire.TypeStarted, 2, `{"pid":"1"}`), []int{pipe, pipe}},
		"output others had":       {options.Exec{}, frame(wire.TypeStarted, 2, `{"id":"exec_a","pid":2,"from":{"stdout":4}}`), []int{pipe, pipe}},
		"output before any":       {options.Exec{}, frame(wire.TypeStarted, 2, `{"id":"exec_a","pid":2,"from":{"stderr":-1}}`), []int{pipe, pipe}},
		"an unknown error":        {options.Exec{}, frame(wire.TypeError, 0, `{"code":"x","message":"y"}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if p, err := answered(t, tt.exec, tt.answer, tt.fds...); err == nil {
				t.Errorf("accepted: %+v", p)
				_ = p.Release()
			}
		})
	}
}

// TestStartGivenUp checks that init is told to end a command when the caller has gone
// while the command was started.
func TestStartGivenUp(t *testing.T) {
	t.Parallel()
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	init, conn := wire.NewConn(p[1], "peer"), wire.NewConn(p[0], "init")
	defer init.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	given := make(chan error, 1)
	go func() {
		_, err := New(nil, false).run(ctx, conn, options.Exec{Cmd: []string{"true"}})
		_ = conn.Close()
		given <- err
	}()
	var got []wire.Type
	for range 3 {
		f, err := init.Recv()
		if err != nil {
			t.Fatalf("after %v: %v", got, err)
		}
		cancel()
		got = append(got, f.Type)
	}
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("the start ended with %v", err)
	}
	if want := []wire.Type{wire.TypeStart, wire.TypeCancel, wire.TypeRelease}; !slices.Equal(got, want) {
		t.Errorf("init got %v, want %v", got, want)
	}
}

// FuzzAnswer sends the host any bytes as the answers of an init.
func FuzzAnswer(f *testing.F) {
	good := frame(wire.TypeStarted, 2, `{"id":"exec_a","pid":2}`)
	f.Add(good)
	f.Add(frame(wire.TypeError, 0, `{"code":"invalid_state","message":"x"}`))
	f.Add(append(good, frame(wire.TypeExited, 0, `{"status":"failed","reason":"exited","exit_code":3}`)...))
	f.Add(append(good, frame(wire.TypeExited, 0, `{"status":1}`)...))
	r, w, err := os.Pipe()
	if err != nil {
		f.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fds := []int{int(r.Fd()), int(r.Fd())}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if len(answer) == 0 || len(answer) > 64<<10 {
			return // descriptors need at least one byte; a socket holds no more
		}
		p, err := answered(t, options.Exec{}, answer, fds...)
		if err != nil {
			return
		}
		_, _ = p.Exit()
		if err := p.Release(); err != nil {
			t.Error(err)
		}
	})
}
