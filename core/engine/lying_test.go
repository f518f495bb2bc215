package engine_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// hostileInit makes the record of a box that runs, whose init is serve.
func hostileInit(t *testing.T, serve func(*wire.Conn)) (home, id string) {
	t.Helper()
	home, id = t.TempDir(), boxID(home, 1)
	self, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	b := record.Box{Record: core.Record{ID: id}}
	b.Began(self)
	if err := record.Open(home).Put(id, b, false); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(record.Folder(home, id), 0o700); err != nil {
		t.Fatal(err)
	}
	fakeSocket(t, record.Folder(home, id), wire.InitSocket, serve)
	return home, id
}

// What an init of a box answers is not believed: the host refuses what it did
// not ask for, in good time, and keeps none of the descriptors.
func TestLyingInit(t *testing.T) {
	t.Parallel()
	const id = "exec_aaaaaaaaaaaaaaaaaaaa"
	started := func(id string, open ...func() int) func(*wire.Conn) {
		return func(c *wire.Conn) {
			var fds []int
			for _, o := range open {
				fds = append(fds, o())
			}
			_ = c.Send(wire.TypeStarted, wire.Exec{ID: id, PID: 2}, fds...)
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
		}
	}
	file := func() int { return openFD(os.Args[0]) }
	folder := func() int { return openFD("/") }
	device := func() int { return openFD("/dev/null") }
	for name, serve := range map[string]func(*wire.Conn){
		"hangs up":        func(c *wire.Conn) { _ = c.Close() },
		"garbage":         func(c *wire.Conn) { raw(c, []byte(strings.Repeat("garbage", 100))) },
		"a huge frame":    func(c *wire.Conn) { raw(c, header(1<<31, wire.TypeStarted, 0)) },
		"half a frame":    func(c *wire.Conn) { raw(c, header(100, wire.TypeStarted, 0)); _ = c.Close() },
		"too many fds":    func(c *wire.Conn) { raw(c, header(2, wire.TypeStarted, 200)) },
		"fds that lack":   func(c *wire.Conn) { raw(c, append(header(2, wire.TypeStarted, 2), "{}"...)) },
		"no JSON":         func(c *wire.Conn) { raw(c, append(header(2, wire.TypeStarted, 0), "xx"...)) },
		"another answer":  func(c *wire.Conn) { _ = c.Send(wire.TypeStatsIs, wire.Stats{}) },
		"no streams":      started(id),
		"one stream":      started(id, pipe),
		"three streams":   started(id, pipe, pipe, pipe),
		"files":           started(id, file, file),
		"folders":         started(id, folder, folder),
		"devices":         started(id, device, device),
		"sockets":         started(id, socket, socket),
		"a pipe and file": started(id, pipe, file),
		"an id to escape": started("../../../../etc/x", pipe, pipe),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, box := hostileInit(t, serve)
			p, err := openAt(t, home).Exec(t.Context(), box, options.Exec{Cmd: []string{"true"}})
			if err == nil {
				_ = p.Release()
			}
			if !fault.Is(err, fault.Engine) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// An init that never answers is left as soon as the caller gives up.
func TestSilentInit(t *testing.T) {
	t.Parallel()
	home, id := hostileInit(t, func(*wire.Conn) {})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	e := openAt(t, home)
	if _, err := e.Exec(ctx, id, options.Exec{Cmd: []string{"true"}}); !fault.Is(err, fault.Timeout) {
		t.Errorf("exec: %v", err)
	}
	if _, err := e.Usage(ctx, id); !fault.Is(err, fault.Timeout) {
		t.Errorf("usage: %v", err)
	}
}

// An end that is none is no end.
func TestLyingEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*wire.Conn){
		"another frame": func(c *wire.Conn) { _ = c.Send(wire.TypeStatsIs, wire.Stats{}) },
		"no JSON":       func(c *wire.Conn) { raw(c, append(header(2, wire.TypeExited, 0), "xx"...)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			home, id := hostileInit(t, func(c *wire.Conn) {
				out, err := pipe(), pipe()
				_ = c.Send(wire.TypeStarted, wire.Exec{ID: "exec_aaaaaaaaaaaaaaaaaaaa", PID: 2}, out, err)
				_, _ = unix.Close(out), unix.Close(err)
				<-release
				end(c)
			})
			p, err := openAt(t, home).Exec(t.Context(), id, options.Exec{Cmd: []string{"true"}})
			close(release)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Release()
			if s, err := p.Exit(); !fault.Is(err, fault.Engine) {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
}

func raw(c *wire.Conn, b []byte) { _, _ = unix.Write(c.FD(), b) }

func header(size uint32, t wire.Type, fds byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, size), byte(t), fds)
}

func openFD(path string) int {
	fd, _ := unix.Open(filepath.Clean(path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return fd
}

// pipe gives the read end of a pipe.
func pipe() int {
	var p [2]int
	_ = unix.Pipe2(p[:], unix.O_CLOEXEC)
	_ = unix.Close(p[1])
	return p[0]
}

func socket() int {
	fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return fd
}
