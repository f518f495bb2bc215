package attack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// given is the time that each call of the drill has, and late how long after it none may
// still wait: the machine may be slow, but a call that hangs never returns.
const (
	given = 50 * time.Millisecond
	late  = 20 * time.Second
)

// TestDrill replaces the init of a box by one that answers every request of the host with
// every frame that there is, in every wrong way. No call waits longer than its time, no
// descriptor that came with an answer stays open, and memory stays bounded.
func TestDrill(t *testing.T) {
	t.Parallel()
	begun := peak(t)
	t.Run("types", func(t *testing.T) {
		for kind := wire.TypePrepare; kind <= wire.TypeMain+1; kind++ { // the last one is none
			t.Run(fmt.Sprint(kind), func(t *testing.T) {
				t.Parallel()
				var wg sync.WaitGroup
				for name, call := range drilled {
					wg.Go(func() { drill(t, name, call, kind) })
				}
				wg.Wait()
			})
		}
	})
	if grown := peak(t) - begun; grown > 512 {
		t.Errorf("the answers took %d MiB of memory", grown)
	}
}

// drilled are the calls that ask the init of a box.
var drilled = map[string]func(ctx context.Context, e core.Engine, box string) error{
	"exec": func(ctx context.Context, e core.Engine, box string) error {
		p, err := e.Exec(ctx, box, options.Exec{Cmd: []string{"true"}})
		if err == nil {
			err = p.Release()
		}
		return err
	},
	"attach": func(ctx context.Context, e core.Engine, box string) error {
		p, err := e.Attach(ctx, box, drillExec, nil)
		if err == nil {
			err = p.Release()
		}
		return err
	},
	"execs": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.Execs(ctx, box)
		return err
	},
	"find": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.FindExec(ctx, box, drillExec)
		return err
	},
	"await": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.AwaitExec(ctx, box, drillExec)
		return err
	},
	"cancel": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.CancelExec(ctx, box, drillExec, 0)
		return err
	},
	"signal": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.SignalExec(ctx, box, drillExec, 15)
		return err
	},
	"interrupt": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.InterruptExec(ctx, box, drillExec)
		return err
	},
	"usage": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.Usage(ctx, box)
		return err
	},
	"upload": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.Upload(ctx, box, core.Upload{Dest: "/x"}, strings.NewReader(strings.Repeat("x", 1<<20)))
		return err
	},
	"download": func(ctx context.Context, e core.Engine, box string) error {
		d, err := e.Download(ctx, box, options.Download{Path: "/x"})
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, d)
		return errors.Join(err, d.Close())
	},
	"stat": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.StatFile(ctx, box, options.StatFile{Path: "/x"})
		return err
	},
	"list": func(ctx context.Context, e core.Engine, box string) error {
		_, err := e.ListFiles(ctx, box, options.ListFiles{Path: "/x", PageSize: 10})
		return err
	},
	"watch": func(ctx context.Context, e core.Engine, box string) error {
		w, err := e.WatchFiles(ctx, box, options.WatchFiles{Path: "/x"})
		if err != nil {
			return err
		}
		_, err = w.Next(ctx)
		return errors.Join(err, w.Close())
	},
}

// drillExec is an exec that the init of the drill may know.
const drillExec = "exec_aaaaaaaaaaaaaaaaaaaa"

// wrongly are the ways in which a frame is sent. Where one passes descriptors, they are
// all of the pipe's end w.
var wrongly = []struct {
	name string
	send func(c *wire.Conn, kind wire.Type, w int)
}{
	{"no body", func(c *wire.Conn, kind wire.Type, _ int) { _ = c.Send(kind, nil) }},
	{"an empty object", func(c *wire.Conn, kind wire.Type, _ int) { _ = c.Send(kind, struct{}{}) }},
	{"a list", func(c *wire.Conn, kind wire.Type, _ int) { _ = c.Send(kind, []int{1}) }},
	{"twice", func(c *wire.Conn, kind wire.Type, _ int) {
		_ = c.Send(kind, wire.Exec{ID: drillExec, PID: 2})
		_ = c.Send(kind, wire.Exec{ID: drillExec, PID: 2})
	}},
	{"long", func(c *wire.Conn, kind wire.Type, _ int) {
		_ = c.Send(kind, wire.Exec{ID: drillExec, Cmd: []string{strings.Repeat("x", 1<<20)}})
	}},
	{"too long", func(c *wire.Conn, kind wire.Type, _ int) { raw(c, header(1<<31, kind, 0)) }},
	{"half of it", func(c *wire.Conn, kind wire.Type, _ int) { raw(c, append(header(100, kind, 0), `{"id":"`...)) }},
	{"without end", func(c *wire.Conn, kind wire.Type, _ int) {
		for c.Send(kind, wire.Exec{ID: drillExec, PID: 2, Cmd: []string{strings.Repeat("x", 1<<16)}}) == nil {
		}
	}},
	{"a descriptor", func(c *wire.Conn, kind wire.Type, w int) { _ = c.Send(kind, struct{}{}, w) }},
	{"two descriptors", func(c *wire.Conn, kind wire.Type, w int) {
		_ = c.Send(kind, wire.Exec{ID: drillExec, PID: 2}, w, w)
	}},
	{"many descriptors", func(c *wire.Conn, kind wire.Type, w int) {
		_ = c.Send(kind, struct{}{}, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w)
	}},
}

// drill makes one call again and again, and has it answered with a frame in each wrong way.
func drill(t *testing.T, name string, call func(context.Context, core.Engine, string) error, kind wire.Type) {
	t.Helper()
	answers := make(chan func(*wire.Conn), 1)
	home, box := hostileInit(t, func(c *wire.Conn) { (<-answers)(c) })
	e := boxes.Open(t, home)
	for _, way := range wrongly {
		r, w := drillPipe(t)
		answers <- func(c *wire.Conn) {
			way.send(c, kind, w)
			_ = unix.Close(w)
		}
		ctx, cancel := context.WithTimeout(t.Context(), given)
		from := time.Now()
		err := call(ctx, e, box)
		cancel()
		if took := time.Since(from); took > given+late {
			t.Errorf("%s: frame %d, %s: took %v", name, kind, way.name, took)
		}
		if err != nil && !fault.Is(err, fault.Engine) && !fault.Is(err, fault.Timeout) {
			t.Errorf("%s: frame %d, %s: %v", name, kind, way.name, err)
		}
		_ = r.SetReadDeadline(time.Now().Add(late))
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: frame %d, %s: a descriptor is still open: %v", name, kind, way.name, err)
		}
		_ = r.Close()
	}
}

// drillPipe returns a pipe. Its reading end reads EOF once nobody has the other one.
func drillPipe(t *testing.T) (r *os.File, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(p[0], true); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(p[0]), "pipe"), p[1]
}

// peak returns the most memory that this process has had, in MiB.
func peak(t *testing.T) int64 {
	t.Helper()
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return use.Maxrss >> 10
}
