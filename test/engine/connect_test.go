package engine_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// echo listens in the network of a box, on an address of it, and returns to each client
// what comes from it. It returns the port.
func echo(t *testing.T, b *boxes.Box, address string) (port int) {
	t.Helper()
	boxSpace(t, b.Record).do(t, func() {
		l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = l.Close() })
		port = l.Addr().(*net.TCPAddr).Port
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}
		}()
	})
	return port
}

// ownAddress returns the address of a box in its network.
func ownAddress(t *testing.T, b *boxes.Box) string {
	t.Helper()
	return strings.TrimSpace(b.Sh(t, `ip -4 -o addr show eth0 | awk '{sub("/.*", "", $4); print $4}'`))
}

// exchange writes to a connection, closes it for writing, and returns all that comes.
func exchange(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(answer)
}

// TestConnect connects to programs that listen on one address alone, in boxes with
// and without a network, and wants the way back to stay open when ours is closed.
func TestConnect(t *testing.T) {
	t.Parallel()
	boxes := map[string]*boxes.Box{
		options.NetworkIsolated: boxes.New(t),
		options.NetworkNone:     boxes.New(t, func(o *options.Box) { o.Network = options.NetworkNone }),
	}
	for _, tt := range []struct{ network, address string }{
		{options.NetworkIsolated, "127.0.0.1"},
		{options.NetworkIsolated, "0.0.0.0"},
		{options.NetworkIsolated, "::1"},
		{options.NetworkIsolated, ownAddress(t, boxes[options.NetworkIsolated])},
		{options.NetworkNone, "127.0.0.1"},
		{options.NetworkNone, "::1"},
	} {
		b := boxes[tt.network]
		conn, err := b.Engine.Connect(t.Context(), b.ID, echo(t, b, tt.address))
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		if got := exchange(t, conn, "hello\n"); got != "hello\n" {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}

// TestConnectIsIsolated wants no box to lead to a program of the host or of another
// box, and a box whose port answers nobody to say so.
func TestConnectIsIsolated(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host := l.Addr().(*net.TCPAddr).Port
	a, other := boxes.New(t), boxes.New(t, func(o *options.Box) { o.Network = options.NetworkNone })
	for _, port := range []int{host, echo(t, other, "0.0.0.0"), 1, 65535} {
		_, err := a.Engine.Connect(t.Context(), a.ID, port)
		if !fault.Is(err, fault.PortUnreachable) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	for _, port := range []int{0, -1, 65536} {
		if _, err := a.Engine.Connect(t.Context(), a.ID, port); !fault.Is(err, fault.InvalidArgument) {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

// mute listens in the network of a box and accepts nothing. It returns the port.
func mute(t *testing.T, b *boxes.Box) (port int) {
	t.Helper()
	boxSpace(t, b.Record).do(t, func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
		must(t, unix.Listen(fd, 1))
		at, err := unix.Getsockname(fd)
		must(t, err)
		port = at.(*unix.SockaddrInet4).Port
	})
	return port
}

// TestConnectGivesUp wants a connection that nobody accepts to end with its context.
func TestConnectGivesUp(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	port := mute(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for range 8 { // more than its queue has room for
		conn, err := b.Engine.Connect(ctx, b.ID, port)
		if err == nil {
			defer conn.Close()
			continue
		}
		if !fault.Is(err, fault.Timeout) {
			t.Error(err)
		}
		return
	}
	t.Error("nobody accepts, and all connections stand")
}

// TestConnectionEndsWithBox wants connections to end with their box, and a box that is
// paused or has ended to refuse new ones.
func TestConnectionEndsWithBox(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	conn, err := b.Engine.Connect(t.Context(), b.ID, echo(t, b, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	refused := func(state string) {
		t.Helper()
		if _, err := b.Engine.Connect(t.Context(), b.ID, 8080); !fault.Is(err, fault.InvalidState) || !strings.Contains(err.Error(), state) {
			t.Errorf("%s: %v", state, err)
		}
	}
	if _, err := b.Engine.Pause(t.Context(), b.ID, false); err != nil {
		t.Fatal(err)
	}
	refused("paused")
	if _, err := b.Engine.Resume(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Engine.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	refused("stopped")
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("the end was %v", err) // a reset or the end, as the kernel has it
	}
	if _, err := b.Engine.Connect(t.Context(), "box_aaaaaaaaaaaaaaaaaaaa", 8080); !fault.Is(err, fault.BoxNotFound) {
		t.Error(err)
	}
}
