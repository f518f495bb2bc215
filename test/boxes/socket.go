package boxes

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/sockets"
)

// Dial connects to a socket in a directory, as the engine's client does.
func Dial(t testing.TB, dir, name string) *wire.Conn {
	t.Helper()
	opened, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	conn, err := wire.Dial(opened, name)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// DialInit connects to a box's init as a process of its own does.
func (b *Box) DialInit(t testing.TB) *wire.Conn {
	t.Helper()
	return Dial(t, record.Dir(b.Home, b.ID), wire.InitSocket)
}

// ShimPID asks the shim of a home who it is. When it returns, the shim has closed the
// connection.
func ShimPID(t testing.TB, home string) int {
	t.Helper()
	conn := Dial(t, filepath.Join(home, "engine"), wire.ShimSocket)
	defer conn.Close()
	f, err := conn.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var hello wire.Hello
	if err := f.Decode(&hello); err != nil {
		t.Fatal(err)
	}
	conn.CloseWrite()
	if f, err := conn.Recv(); err == nil {
		t.Fatalf("the shim says %d to the end of a connection", f.Type)
	}
	return hello.PID
}

// Serve stands for a shim or an init: it serves each connection to a socket
// until the test ends.
func Serve(t testing.TB, dir, name string, serve func(*wire.Conn)) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	fd, err := sockets.Replace(opened, name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := wire.NewListener(fd)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // at the end of the test
			serve(conn)
		}
	})
}
