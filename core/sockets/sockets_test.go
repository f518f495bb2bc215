package sockets_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/sockets"
)

// dir opens a directory whose path is longer than an address.
func dir(t *testing.T) (*os.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), strings.Repeat("d", 200), strings.Repeat("e", 200))
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := sockets.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, path
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	dir, path := dir(t)
	listening, err := sockets.Listen(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listening)
	st, err := os.Lstat(filepath.Join(path, "s"))
	if err != nil || st.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("mode %v (%v), want a socket for its owner alone", st.Mode(), err)
	}
	conn, err := sockets.Connect(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(conn)
	polled, err := net.Dial("unix", sockets.Address(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer polled.Close()
	for _, fd := range []int{listening, conn} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("flags %#x (%v): programs that are started get it", flags, err)
		}
	}
	for range 2 {
		accepted, _, err := unix.Accept4(listening, unix.SOCK_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(accepted)
	}
}

func TestTaken(t *testing.T) {
	t.Parallel()
	dir, _ := dir(t)
	first, err := sockets.Listen(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(first)
	if _, err := sockets.Listen(dir, "s"); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a second one: %v", err)
	}
	second, err := sockets.Replace(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(second)
	conn, err := sockets.Connect(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(conn)
	accepted, _, err := unix.Accept4(second, unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal("it did not come to the second:", err)
	}
	_ = unix.Close(accepted)
}

func TestNobody(t *testing.T) {
	t.Parallel()
	dir, _ := dir(t)
	if _, err := sockets.Connect(dir, "s"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("no socket: %v", err)
	}
	fd, err := sockets.Replace(dir, "s")
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	if _, err := sockets.Connect(dir, "s"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestMaxPath connects by a path of the greatest length, and by no longer one.
func TestMaxPath(t *testing.T) {
	t.Parallel()
	at, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(at) })
	for length, want := range map[int]bool{sockets.MaxPath: true, sockets.MaxPath + 1: false} {
		name := filepath.Join(at, strings.Repeat("n", length-len(at)-1))
		l, err := net.Listen("unix", name)
		if (err == nil) != want {
			t.Errorf("%d bytes: %v", len(name), err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
}
