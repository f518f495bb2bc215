package attack_test

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
	"sandbox/test/members"
)

// hostileInit makes the record of a box that runs, whose init is serve.
func hostileInit(t *testing.T, serve func(*wire.Conn)) (home, id string) {
	t.Helper()
	home, id = t.TempDir(), boxes.ID(home, 1)
	self, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	b := record.Box{Record: core.Record{ID: id}}
	b.Began(self)
	if err := record.Open(home).Put(id, b, false); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(record.Dir(home, id), 0o700); err != nil {
		t.Fatal(err)
	}
	boxes.Serve(t, record.Dir(home, id), wire.InitSocket, serve)
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
	dir := func() int { return openFD("/") }
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
		"directories":     started(id, dir, dir),
		"devices":         started(id, device, device),
		"sockets":         started(id, socket, socket),
		"a pipe and file": started(id, pipe, file),
		"an id to escape": started("../../../../etc/x", pipe, pipe),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, box := hostileInit(t, serve)
			p, err := boxes.Open(t, home).Exec(t.Context(), box, options.Exec{Cmd: []string{"true"}})
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
	e := boxes.Open(t, home)
	wantGivenUp(t, "exec", func(ctx context.Context) error {
		_, err := e.Exec(ctx, id, options.Exec{Cmd: []string{"true"}})
		return err
	})
	wantGivenUp(t, "usage", func(ctx context.Context) error { _, err := e.Usage(ctx, id); return err })
}

// wantGivenUp asks what is never answered, and wants the question to end with its context:
// not before, for then nothing was asked, and not only when the minute is over that an
// init has for an answer.
func wantGivenUp(t *testing.T, name string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	err := ask(ctx)
	if took := time.Since(begun); !fault.Is(err, fault.Timeout) || ctx.Err() == nil || took > 30*time.Second {
		t.Errorf("%s: %v after %v", name, err, took)
	}
}

// The same goes for what an init says of its execs.
func TestLyingRecords(t *testing.T) {
	t.Parallel()
	const id = "exec_aaaaaaaaaaaaaaaaaaaa"
	exec := func(e wire.Exec) func(*wire.Conn) {
		return func(c *wire.Conn) { _ = c.Send(wire.TypeExec, e) }
	}
	endless := func(c *wire.Conn) {
		for c.Send(wire.TypeExec, wire.Exec{ID: id, Cmd: []string{strings.Repeat("x", 1<<20)}}) == nil {
		}
	}
	for name, serve := range map[string]func(*wire.Conn){
		"hangs up":        func(c *wire.Conn) { _ = c.Close() },
		"garbage":         func(c *wire.Conn) { raw(c, []byte(strings.Repeat("garbage", 100))) },
		"half a frame":    func(c *wire.Conn) { raw(c, header(100, wire.TypeExec, 0)); _ = c.Close() },
		"no JSON":         func(c *wire.Conn) { raw(c, append(header(2, wire.TypeExec, 0), "xx"...)) },
		"another answer":  func(c *wire.Conn) { _ = c.Send(wire.TypeStatsIs, wire.Stats{}) },
		"an id to escape": exec(wire.Exec{ID: "../../x"}),
		"another exec":    exec(wire.Exec{ID: "exec_bbbbbbbbbbbbbbbbbbbb", End: &api.ExitStatus{Status: "failed"}}),
		"an end of none":  exec(wire.Exec{ID: id, End: &api.ExitStatus{Status: "lost"}}),
		"no end":          endless,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, box := hostileInit(t, func(c *wire.Conn) { serve(c); _ = c.Close() })
			e := boxes.Open(t, home)
			if name != "no end" {
				_, err := e.FindExec(t.Context(), box, id)
				wantEngine(t, "find", err)
				_, err = e.CancelExec(t.Context(), box, id, 0)
				wantEngine(t, "cancel", err)
				_, err = e.AwaitExec(t.Context(), box, id)
				wantEngine(t, "await", err)
			}
			_, err := e.Execs(t.Context(), box)
			wantEngine(t, "list", err)
		})
	}
}

func wantEngine(t *testing.T, what string, err error) {
	t.Helper()
	if !fault.Is(err, fault.Engine) {
		t.Errorf("%s: got %v", what, err)
	}
}

// An exec of an init that dies is lost, for its reader and for who waits.
func TestLostExec(t *testing.T) {
	t.Parallel()
	const id = "exec_aaaaaaaaaaaaaaaaaaaa"
	home, box := hostileInit(t, func(c *wire.Conn) {
		_, _ = c.Recv() // the request
		_ = c.Send(wire.TypeExec, wire.Exec{ID: id, PID: 2})
		_ = c.Close()
	})
	rec, err := boxes.Open(t, home).AwaitExec(t.Context(), box, id)
	members.Equal(t, "a lost exec", members.Of{
		"failure": {err, nil}, "status": {rec.Status, api.ExecLost}, "an end": {rec.FinishedAt != nil, true},
		"exit code": {rec.ExitCode, nil}, "box": {rec.BoxID, box},
	})
}

// moving answers a transfer with these descriptors.
func moving(fds ...int) func(*wire.Conn) {
	return func(c *wire.Conn) {
		_ = c.Send(wire.TypeMoving, nil, fds...)
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
}

// says is a child that says text and sends data, and ends.
func says(text, data string) func(*wire.Conn) {
	return func(c *wire.Conn) {
		var p [2]int
		_ = unix.Pipe2(p[:], unix.O_CLOEXEC)
		talk, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		_, _ = unix.Write(talk[1], []byte(text))
		_, _ = unix.Write(p[1], []byte(data))
		_, _ = unix.Close(p[1]), unix.Shutdown(talk[1], unix.SHUT_WR)
		moving(p[0], talk[0])(c)
		_, _ = c.Recv() // the request
		_, _ = c.Recv() // the end
		_ = unix.Close(talk[1])
	}
}

// What an init, or the child that it starts, answers to a transfer is not
// believed either.
func TestLyingTransfer(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(*wire.Conn){
		"hangs up":           func(c *wire.Conn) { _ = c.Close() },
		"garbage":            func(c *wire.Conn) { raw(c, []byte(strings.Repeat("garbage", 100))) },
		"another answer":     func(c *wire.Conn) { _ = c.Send(wire.TypeStatsIs, wire.Stats{}) },
		"nothing":            moving(),
		"one pipe":           moving(pipe()),
		"a file":             moving(openFD(os.Args[0]), socket()),
		"two pipes":          moving(pipe(), pipe()),
		"three":              moving(pipe(), socket(), pipe()),
		"says nothing":       says("", "text"),
		"says garbage":       says("panic: at the disco\n", "text"),
		"says too much":      says(`{"path":"`+strings.Repeat("x", 150_000), "text"),
		"an unknown failure": says(`{"error":{"code":"unauthenticated","message":"x"}}`, ""),
		"done before":        says(`{"size":4,"done":true}`, "text"),
		"a negative size":    says(`{"size":-5}`, "text"),
		"shorter":            says(`{"size":10}`, "text"),
		"shorter and done":   says(`{"size":10}{"done":true}`, "text"),
		"not done":           says(`{"size":4}`, "text!"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, box := hostileInit(t, func(c *wire.Conn) { serve(c); _ = c.Close() })
			d, err := boxes.Open(t, home).Download(t.Context(), box, options.Download{Path: "/file"})
			if err == nil {
				_, err = io.Copy(io.Discard, d)
				_ = d.Close()
			}
			if name == "not done" && err == nil {
				return // all that was announced came
			}
			wantEngine(t, "download", err)
		})
	}
}

// Nor is what it answers to an operation on files.
func TestLyingOperation(t *testing.T) {
	t.Parallel()
	record := func(e wire.Entry) string { return string(wire.AppendRecord(nil, e.Append(nil))) }
	file := func(path string) string { return record(wire.Entry{Path: path, Mode: unix.S_IFREG}) }
	const done = `{"done":true}`
	for name, child := range map[string]struct{ text, data string }{
		"nothing":           {"", ""},
		"garbage":           {done, strings.Repeat("garbage", 100)},
		"half a record":     {done, file("a")[:3]},
		"no end":            {"", file("a")},
		"not done":          {"{}", file("a")},
		"out of order":      {done, file("b") + file("a")},
		"twice":             {done, file("a") + file("a")},
		"too many":          {done, file("a") + file("b") + file("c")},
		"the directory":     {done, file("")},
		"up":                {done, file("../../etc/passwd")},
		"a page of nothing": {`{"done":true,"more":true}`, ""},
		"a long path":       {done, record(wire.Entry{Path: strings.Repeat("x", wire.MaxRecord), Mode: unix.S_IFREG})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, box := hostileInit(t, func(c *wire.Conn) { says(child.text, child.data)(c); _ = c.Close() })
			_, err := boxes.Open(t, home).ListFiles(t.Context(), box, options.ListFiles{Path: "/d", PageSize: 2})
			wantEngine(t, "list", err)
			_, err = boxes.Open(t, home).StatFile(t.Context(), box, options.StatFile{Path: "/d"})
			if name != "the directory" {
				wantEngine(t, "stat", err)
			}
		})
	}
}

// A child that neither takes nor sends is left when the caller gives up.
func TestSilentTransfer(t *testing.T) {
	t.Parallel()
	home, box := hostileInit(t, func(c *wire.Conn) {
		var p [2]int
		_ = unix.Pipe2(p[:], unix.O_CLOEXEC)
		talk, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		_ = c.Send(wire.TypeMoving, nil, p[1], talk[0])
		_, _ = c.Recv() // the request
		_, _ = c.Recv() // the end
		for _, fd := range []int{p[0], p[1], talk[0], talk[1]} {
			_ = unix.Close(fd)
		}
		_ = c.Close()
	})
	e := boxes.Open(t, home)
	wantGivenUp(t, "upload", func(ctx context.Context) error {
		_, err := e.Upload(ctx, box, core.Upload{Dest: "/x"}, strings.NewReader(strings.Repeat("x", 1<<20)))
		return err
	})
	wantGivenUp(t, "download", func(ctx context.Context) error {
		_, err := e.Download(ctx, box, options.Download{Path: "/x"})
		return err
	})
}

// Nor is what it tells of a watch.
func TestLyingWatch(t *testing.T) {
	t.Parallel()
	begun := string(wire.AppendRecord(nil, nil))
	event := func(e wire.Event) string { return string(wire.AppendRecord(nil, e.Append(nil))) }
	for name, data := range map[string]string{
		"nothing":       "",
		"garbage":       strings.Repeat("garbage", 100),
		"an event":      event(wire.Event{Type: api.Overflow}),
		"garbage then":  begun + "garbage",
		"another event": begun + event(wire.Event{Type: "grow", Path: "a"}),
		"up":            begun + event(wire.Event{Type: api.FileCreated, Path: "../../etc"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, box := hostileInit(t, func(c *wire.Conn) { says(`{"done":true}`, data)(c); _ = c.Close() })
			w, err := boxes.Open(t, home).WatchFiles(t.Context(), box, options.WatchFiles{Path: "/d"})
			if err == nil {
				_, err = w.Next(t.Context())
				_ = w.Close()
			}
			wantEngine(t, "watch", err)
		})
	}
}

// So is one that sends no record.
func TestSilentOperation(t *testing.T) {
	t.Parallel()
	home, box := hostileInit(t, func(c *wire.Conn) {
		var p [2]int
		_ = unix.Pipe2(p[:], unix.O_CLOEXEC)
		talk, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		moving(p[0], talk[0])(c)
		_, _ = c.Recv() // the request
		_, _ = c.Recv() // the end
		_, _, _ = unix.Close(p[1]), unix.Close(talk[1]), c.Close()
	})
	e := boxes.Open(t, home)
	wantGivenUp(t, "stat", func(ctx context.Context) error {
		_, err := e.StatFile(ctx, box, options.StatFile{Path: "/x"})
		return err
	})
}

// An end that is none is no end.
func TestLyingEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*wire.Conn){
		"another frame": func(c *wire.Conn) { _ = c.Send(wire.TypeStatsIs, wire.Stats{}) },
		"no JSON":       func(c *wire.Conn) { raw(c, append(header(2, wire.TypeExited, 0), "xx"...)) },
		"no state":      func(c *wire.Conn) { _ = c.Send(wire.TypeExited, api.ExitStatus{Status: "running"}) },
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
			p, err := boxes.Open(t, home).Exec(t.Context(), id, options.Exec{Cmd: []string{"true"}})
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

// pipe returns the read end of a pipe.
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
