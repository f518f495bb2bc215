// Package boxes makes boxes straight on the engine, for the suites that look at what
// the engine does (test/engine) and at what gets through it (test/attack).
package boxes

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine"
	"sandbox/core/engine/record"
	"sandbox/core/options"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

// pool makes boxes of spares in a suite that is run with `-args -pool -1`.
var pool = flag.Int("pool", 0, "how many boxes each home keeps ready; -1 makes every box of a ready one")

// Open returns the engine of a home, which is closed with the test.
func Open(t testing.TB, home string) *engine.Client {
	t.Helper()
	return OpenConfig(t, engine.Config{Home: home, Pool: *pool})
}

// OpenConfig is [Open] with more settings. The programs are those that make build
// built.
func OpenConfig(t testing.TB, config engine.Config) *engine.Client {
	t.Helper()
	config.HelperDir = programs.Dir()
	e, err := engine.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// ID returns the n-th id of a home. Homes that are used at the same time have
// other ones: boxes have their ids as names among the host's cgroups.
func ID(home string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", home, n))
	return "box_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:20]
}

// made counts the ids of NextID. All homes of a host share its cgroups, and
// another suite may run beside this one, so it does not begin at zero.
var made atomic.Int32

func init() { made.Store(rand.Int32N(1 << 30)) }

// NextID returns an id of the home that was not given out before.
func NextID(home string) string { return ID(home, int(made.Add(1))) }

// Request is the request for a box on the directory root, kept when it stops,
// with the defaults of options.
func Request(id, root string) core.CreateRequest {
	o := options.Defaults()
	o.RootfsPath, o.AutoRemove = root, false
	return core.CreateRequest{ID: id, Options: o, Image: core.Image{Layers: []string{root}}}
}

// Create makes a box of [Request]. The caller removes it.
func Create(ctx context.Context, e core.Engine, id, root string) (core.Record, error) {
	return e.Create(ctx, Request(id, root))
}

// Box is a box with the home that it lies in.
type Box struct {
	core.Record
	Engine *engine.Client
	Home   string
	Root   string // its RootfsPath
}

// New makes a small box in a home of its own on busybox. It ends with the test.
func New(t testing.TB, change ...func(*options.Box)) *Box {
	t.Helper()
	return On(t, rootfs.Busybox(t), change...)
}

// On is [New] on the directory root.
func On(t testing.TB, root string, change ...func(*options.Box)) *Box {
	t.Helper()
	b := &Box{Home: t.TempDir(), Root: root}
	b.Engine = Open(t, b.Home)
	req := Request(NextID(b.Home), root)
	req.Options.CPUs, req.Options.MemoryMiB = 1, 64
	for _, c := range change {
		c(&req.Options)
	}
	var err error
	if b.Record, err = b.Engine.Create(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Engine.Remove(context.Background(), b.ID, true); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Sh runs a script in the box as its root and returns its output.
func (b *Box) Sh(t testing.TB, script string) string {
	t.Helper()
	out, _ := b.Output(t, options.Exec{Cmd: []string{"sh", "-c", script}})
	return out
}

// Slot returns the name of the box's groups.
func (b *Box) Slot(t testing.TB) string {
	t.Helper()
	rec, err := record.Open(b.Home).Get(b.ID)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Slot()
}

// Output runs a command in the box and returns its output and end.
func (b *Box) Output(t testing.TB, o options.Exec) (string, api.ExitStatus) {
	t.Helper()
	return Output(t, b.Engine, b.ID, o)
}

// Lives wants the box to answer, with the init that it began with.
func (b *Box) Lives(t testing.TB) {
	t.Helper()
	if out := b.Sh(t, "echo lives"); out != "lives\n" {
		t.Errorf("the box answers %q", out)
	}
	if rec, err := b.Engine.Get(t.Context(), b.ID); err != nil || rec.PID != b.PID || rec.Status != api.Running {
		t.Errorf("the box is %+v, %v", rec, err)
	}
}

// Output runs a command in a box and returns its output and end.
func Output(t testing.TB, e core.Engine, box string, o options.Exec) (string, api.ExitStatus) {
	t.Helper()
	b, err := core.New(core.Config{Engine: e}).Get(t.Context(), box)
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.Exec(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var out strings.Builder
	status, err := x.Stream(t.Context(), make([]byte, core.OutputBuffer), func(_ bool, p []byte) error {
		out.Write(p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), status
}
