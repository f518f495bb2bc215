package namespaces

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"sandbox/core/engine/wire"
	"sandbox/core/sockets"
	"sandbox/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestNextShimIsAwaited has a shim leave while the next one, which has the namespaces, waits
// for it to end: the process outside has to be there for that one, and goes with it.
func TestNextShimIsAwaited(t *testing.T) {
	t.Parallel()
	o, home := serveOutside(t)
	join := func() {
		fds, err := ask(home)
		must(t, err)
		wire.Frame{FDs: fds}.CloseFDs()
	}
	serve := func() *wire.Conn {
		conn, err := dial(home)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	leave := func(conn *wire.Conn) {
		_, err := request(conn, wire.TypeLeave, nil)
		must(t, err)
		must(t, conn.Close())
		for !o.idle() {
			<-o.changed
		}
	}

	join()
	first := serve()
	join()
	leave(first)
	if o.left() {
		t.Error("the process outside ends before the next shim has come")
	}
	leave(serve())
	if !o.left() {
		t.Error("the process outside stays when the last shim has left")
	}
}

// serveOutside has a process outside answer in a home until the test ends.
func serveOutside(t *testing.T) (*outside, string) {
	t.Helper()
	home := t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, "engine"), 0o700))
	var own spaces
	for name, f := range map[string]**os.File{"user": &own.user, "net": &own.net} {
		var err error
		*f, err = os.Open("/proc/self/ns/" + name)
		must(t, err)
		t.Cleanup(func() { _ = (*f).Close() })
	}
	o := &outside{home: home, log: slog.New(slog.DiscardHandler), spaces: &own, changed: make(chan struct{}, 1)}
	accepting := listenOutside(t, home, o.accept)
	t.Cleanup(func() {
		accepting()
		for !o.idle() {
			<-o.changed
		}
	})
	return o, home
}

// listenOutside runs accept on the socket of the process outside. stop ends it.
func listenOutside(t *testing.T, home string, accept func(*wire.Listener)) (stop func()) {
	t.Helper()
	dir, err := sockets.OpenDir(filepath.Join(home, "engine"))
	must(t, err)
	defer dir.Close()
	fd, err := sockets.Listen(dir, wire.OutsideSocket)
	must(t, err)
	l, err := wire.NewListener(fd)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		accept(l)
	}()
	return func() {
		_ = l.Close()
		<-done
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
