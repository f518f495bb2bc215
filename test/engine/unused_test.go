package engine_test

import (
	"context"
	"io"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// unusedFor makes a box that may be without use for two seconds: on a busy host a test
// may do nothing for one.
func unusedFor(t *testing.T) *boxes.Box {
	t.Helper()
	return boxes.New(t, func(o *options.Box) { o.IdleSeconds = 2 })
}

// lives wants a box to run for longer than it may be without use.
func lives(t *testing.T, b *boxes.Box) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if rec, err := b.Engine.Get(t.Context(), b.ID); err != nil || rec.Status != api.Running {
			t.Fatalf("a box in use: %+v, %v", rec, err)
		}
	}
}

// endsUnused waits until a box has ended, and wants it to say why.
func endsUnused(t *testing.T, b *boxes.Box) {
	t.Helper()
	if rec := boxes.AwaitState(t, b.Engine, b.ID, api.Stopped); rec.Reason != "idle" {
		t.Errorf("a box that nobody used: %+v", rec)
	}
}

// A box is used by who has a watch in it, and by who is connected to a port of it, and
// by nobody when these have left. The box's shim is killed meanwhile: the next one,
// which nobody asks for, goes on.
func TestUse(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(*testing.T, *boxes.Box) io.Closer{
		"a watch": func(t *testing.T, b *boxes.Box) io.Closer {
			w, err := b.Engine.WatchFiles(t.Context(), b.ID, options.WatchFiles{Path: "/"})
			if err != nil {
				t.Fatal(err)
			}
			return w
		},
		"a connection": func(t *testing.T, b *boxes.Box) io.Closer {
			conn, err := b.Engine.Connect(t.Context(), b.ID, echo(t, b, ""))
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := unusedFor(t)
			used := use(t, b)
			lives(t, b)
			kill(t, b.Home)
			lives(t, b)
			_ = used.Close()
			endsUnused(t, b)
		})
	}
}

// Each connection to a port is a use, however short, and looks at a box are none.
func TestShortUses(t *testing.T) {
	t.Parallel()
	b := unusedFor(t)
	port := echo(t, b, "")
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		conn, err := b.Engine.Connect(t.Context(), b.ID, port)
		if err != nil {
			t.Fatal(err)
		}
		if got := exchange(t, conn, "x"); got != "x" {
			t.Fatalf("the box answers %q", got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil { // that somebody looks at it is no use
		if rec, err := b.Engine.Get(ctx, b.ID); err != nil || rec.Status == api.Stopped {
			break
		}
		_, _ = b.Engine.Usage(ctx, b.ID)
		_, _ = b.Engine.Execs(ctx, b.ID)
		time.Sleep(100 * time.Millisecond)
	}
	endsUnused(t, b)
}
