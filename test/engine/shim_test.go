package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/test/boxes"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

// Open names every place in which it looked for programs.
func TestProgramsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"sandbox-shim", "sandbox-init"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not executable"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := engine.Open(engine.Config{Home: t.TempDir(), HelperDir: dir})
	if !fault.Is(err, fault.Engine) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "SANDBOX_HELPER_DIR") {
		t.Errorf("got %v", err)
	}
	_, err = engine.Open(engine.Config{Home: t.TempDir(), Beside: "/nosuch/lib"})
	if !fault.Is(err, fault.Engine) || !strings.Contains(err.Error(), "/nosuch/lib") || !strings.Contains(err.Error(), "/nosuch/libexec/sandbox") {
		t.Errorf("got %v", err)
	}
}

// Another program in the place of a shim: a create fails, names the log or
// the shim, and leaves nothing.
func TestProgramsReplaced(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]string{"shim": "sandbox-shim", "init": "sandbox-init"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, home := t.TempDir(), t.TempDir()
			for _, program := range []string{"sandbox-shim", "sandbox-init"} {
				from := filepath.Join(programs.Dir(), program)
				if program == replaced {
					from = "/bin/true"
				}
				data, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, program), data, 0o700); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
			}
			e, err := engine.Open(engine.Config{Home: home, HelperDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if _, err := boxes.Create(t.Context(), e, boxes.NextID(home), rootfs.Busybox(t)); !fault.Is(err, fault.Engine) {
				t.Errorf("got %v", err)
			}
			if recs, err := e.List(t.Context()); err != nil || len(recs) != 0 {
				t.Errorf("left: %v, %v", recs, err)
			}
			if left, _ := filepath.Glob(filepath.Join(home, "boxes", "*")); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestShimOfAnotherVersion(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	boxes.Serve(t, filepath.Join(home, "engine"), wire.ShimSocket, func(conn *wire.Conn) {
		_ = conn.Send(wire.TypeHello, wire.Hello{Protocol: wire.Protocol, Version: "0.0.1-other", PID: 1})
		_ = conn.Close()
	})
	_, err := boxes.Create(t.Context(), boxes.Open(t, home), boxes.ID(home, 1), "/nowhere")
	if !fault.Is(err, fault.Engine) || !strings.Contains(err.Error(), "0.0.1-other") {
		t.Errorf("got %v", err)
	}
}

// A shim that takes a connection and says nothing, or nonsense, holds nobody.
func TestShimHangs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		serve func(*wire.Conn)
		want  fault.Kind
	}{
		"silent":   {func(*wire.Conn) {}, fault.Timeout},
		"nonsense": {func(c *wire.Conn) { _ = c.Send(wire.TypeHello, []int{1}) }, fault.Engine},
		"no answer": {func(c *wire.Conn) {
			_ = c.Send(wire.TypeHello, wire.Hello{Protocol: wire.Protocol, Version: core.Version, PID: 1})
		}, fault.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			boxes.Serve(t, filepath.Join(home, "engine"), wire.ShimSocket, tt.serve)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			e := boxes.Open(t, home)
			if err := e.Remove(ctx, boxes.ID(home, 1), true); !fault.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// A shim that goes after it has done what it was asked, and before it has said so:
// the next one refuses it, and it is done all the same.
func TestShimGoesBeforeItAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status  api.BoxStatus // that the box has then
		refusal fault.Kind
		ask     func(context.Context, *engine.Client, string) error
	}{
		"remove": {"", fault.BoxNotFound, func(ctx context.Context, e *engine.Client, id string) error { return e.Remove(ctx, id, true) }},
		"stop": {api.Stopped, fault.InvalidState, func(ctx context.Context, e *engine.Client, id string) error {
			_, err := e.Stop(ctx, id, time.Second)
			return err
		}},
		"start": {api.Running, fault.InvalidState, func(ctx context.Context, e *engine.Client, id string) error {
			_, err := e.Start(ctx, id)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, id := t.TempDir(), boxes.ID(t.Name(), 1)
			boxes.Serve(t, filepath.Join(home, "engine"), wire.ShimSocket, forgetful(tt.refusal))
			if tt.status != "" {
				init, err := process.Of(os.Getpid())
				if err == nil {
					err = record.Open(home).Put(id, record.Box{Record: core.Record{ID: id, Status: tt.status}, Init: init}, false)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			e := boxes.Open(t, home)
			if err := e.Flush(t.Context()); err != nil { // leaves a connection for the next request
				t.Fatal(err)
			}
			if err := tt.ask(t.Context(), e, id); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// forgetful is a shim that answers one request and goes at the second one, and the
// next shim, which refuses.
func forgetful(refusal fault.Kind) func(*wire.Conn) {
	gone := false
	return func(c *wire.Conn) {
		_ = c.Send(wire.TypeHello, wire.Hello{Protocol: wire.Protocol, Version: core.Version, PID: 1})
		_, _ = c.Recv()
		if gone {
			_ = c.Send(wire.TypeError, wire.Error{Kind: refusal, Message: "refused"})
			return
		}
		gone = true
		_ = c.Send(wire.TypeDone, nil)
		_, _ = c.Recv()
		_ = c.Close()
	}
}

// A shim that goes while it reads a layer, of which the next one would read the rest alone.
func TestShimGoesInAStream(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	var reads atomic.Int32
	boxes.Serve(t, filepath.Join(home, "engine"), wire.ShimSocket, func(c *wire.Conn) {
		_ = c.Send(wire.TypeHello, wire.Hello{Protocol: wire.Protocol, Version: core.Version, PID: 1})
		f, _ := c.Recv()
		f.CloseFDs()
		if f.Type == wire.TypeUnpack {
			reads.Add(1)
			_ = c.Close()
			return
		}
		_ = c.Send(wire.TypeDone, nil)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a kept connection has no answer
	defer cancel()
	e := boxes.Open(t, home)
	if err := e.Flush(ctx); err != nil { // leaves a connection, on which a request may be sent twice
		t.Fatal(err)
	}
	err := e.Unpack(ctx, strings.NewReader("a tar"), filepath.Join(home, "layers", "new"))
	if !fault.Is(err, fault.Engine) || reads.Load() != 1 {
		t.Errorf("got %v after %d requests, want %v after one", err, reads.Load(), fault.Engine)
	}
}

// A shim that was killed, and whose home nobody uses again, leaves its group:
// the next shim of any home removes it, but no new or busy one.
func TestDeadShimsGroup(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	e := boxes.Open(t, home)
	if _, err := boxes.Create(t.Context(), e, boxes.ID(home, 1), rootfs.Busybox(t)); err != nil {
		t.Fatal(err)
	}
	parents, _ := filepath.Glob("/sys/fs/cgroup/*/sandbox")
	if len(parents) == 0 {
		parents = []string{"/sys/fs/cgroup/sandbox"}
	}
	old, fresh := filepath.Join(parents[0], "shim-"+filepath.Base(filepath.Dir(home))+"-old"), filepath.Join(parents[0], "shim-"+filepath.Base(filepath.Dir(home))+"-new")
	for _, dir := range []string{old, fresh} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	f := boxes.Open(t, other)
	if _, err := boxes.Create(t.Context(), f, boxes.ID(other, 1), rootfs.Busybox(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the group of a dead shim is there")
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("the group of a shim that begins has gone: ", err)
	}
	for engine, id := range map[core.Engine]string{e: boxes.ID(home, 1), f: boxes.ID(other, 1)} {
		if err := engine.Remove(t.Context(), id, true); err != nil {
			t.Error(err)
		}
	}
}
