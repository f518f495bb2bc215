package inits

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/core/ids"
)

// FuzzStarted lets a hostile init answer a start with any frame and any kinds of
// descriptors (p is a pipe, others are no stream). The host must accept only
// pipes, as many as it requested, and keep nothing of an answer that it refused.
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
		proc, err := New(nil, false).started(conn, frame)
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

// FuzzExecRecord lets a hostile init send the record of an exec. A record that
// the host accepts must be fit to be shown.
func FuzzExecRecord(f *testing.F) {
	for _, body := range []string{
		`{"id":"exec_aaaaaaaaaaaaaaaaaaaa","pid":2,"cmd":["a"],"created_at":"2026-01-02T03:04:05Z"}`,
		`{"id":"exec_aaaaaaaaaaaaaaaaaaaa","end":{"status":"failed","exit_code":3,"finished_at":"0001-01-01T00:00:00Z"}}`,
		`{"id":"exec_aaaaaaaaaaaaaaaaaaaa","pid":-1,"timeout_ms":-1,"end":{"status":"lost"}}`, `{"id":"/"}`, `[`,
	} {
		f.Add(byte(wire.TypeExec), []byte(body))
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		rec, err := recordOf(wire.Frame{Type: wire.Type(kind), Body: body})
		if err != nil {
			return
		}
		if !ids.Exec.Valid(rec.ID) || rec.PID != nil && *rec.PID <= 0 || (rec.Status == api.ExecRunning) != (rec.FinishedAt == nil) ||
			rec.DurationMS != nil && *rec.DurationMS < 0 {
			t.Errorf("took %+v", rec)
		}
		if _, err := json.Marshal(rec); err != nil {
			t.Errorf("%+v can't be shown: %v", rec, err)
		}
	})
}

// TestStartedNeverWaits checks that an init that passes pipes in blocking mode
// can't make the host wait.
func TestStartedNeverWaits(t *testing.T) {
	var stream [2]int
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err = errors.Join(err, unix.Pipe2(stream[:], unix.O_CLOEXEC)); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(stream[1]) // kept open as init would, so that a read meets no EOF
	second, err := unix.Dup(stream[0])
	if err != nil {
		t.Fatal(err)
	}
	frame := wire.Frame{Type: wire.TypeStarted, Body: []byte(`{"id":"exec_aaaaaaaaaaaaaaaaaaaa","pid":2}`), FDs: []int{stream[0], second}}
	proc, err := New(nil, false).started(wire.NewConn(p[0], "init"), frame)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[1])
	defer proc.Release()
	for _, f := range []*os.File{proc.Stdout, proc.Stderr} {
		if _, err := unix.Read(int(f.Fd()), make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("a read returns %v", err)
		}
	}
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
