package snapshot_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// kills is how often the shim is killed; `go test ./test/snapshot -args -kills 300` does it
// as often as the project asks for.
var kills = flag.Int("kills", 24, "how often TestKilled kills the shim")

// TestKilled kills the shim at some moment of a snapshot, a rollback, a create or a prune.
// Whatever was cut off, the box has its disk as it was before or as it was to be, each
// snapshot that was told of is whole, and nothing is left that nobody needs.
func TestKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	kinds := []func(o *options.Box){func(*options.Box) {}, func(o *options.Box) { o.DiskSizeGB = 1 }}
	for i := range *kills {
		v := &victim{home: h, round: i, box: h.box("base", kinds[i/4%len(kinds)])}
		v.write("first")
		v.take()
		v.write("second")
		if i%3 == 0 {
			h.stop(v.box)
		}
		v.hit(i % 4)
		v.check()
		must(t, v.box.Remove(t.Context(), true))
		for _, name := range v.taken {
			must(t, h.Images.Remove(t.Context(), name, true))
		}
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	_, err := h.Images.Prune(t.Context(), false)
	must(t, err)
	h.onlyBase()
}

// victim is a box whose shim is killed.
type victim struct {
	home
	round int
	box   *core.Box
	taken []string // the names of its snapshots
	state string   // what its file holds
}

func (v *victim) write(state string) {
	v.t.Helper()
	v.state = state
	v.sh(v.box, "echo "+state+" >/file; head -c 4000000 /dev/urandom >/bulk; sync")
}

func (v *victim) take() {
	v.t.Helper()
	name := fmt.Sprintf("%s-%d", v.state, v.round)
	v.snapshot(v.box, name)
	v.taken = append(v.taken, name)
}

// hit begins one of four works and kills the shim meanwhile.
func (v *victim) hit(work int) {
	v.t.Helper()
	pid := boxes.ShimPID(v.t, v.Home)
	ctx := context.WithoutCancel(v.t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		switch work {
		case 0:
			_, err = v.box.Snapshot(ctx, fmt.Sprintf("late-%d", v.round))
		case 1:
			_, err = v.box.Rollback(ctx, v.taken[0])
		case 2:
			b, _, created := v.Create(ctx, clone(v.taken[0]))
			if err = created; err == nil {
				err = b.Remove(ctx, true)
			}
		case 3:
			_, err = v.Images.Prune(ctx, false)
		}
		done <- err
	}()
	time.Sleep(time.Duration(rand.Int64N(int64(30 * time.Millisecond)))) // any moment of the work
	_ = syscall.Kill(pid, syscall.SIGKILL)
	err := <-done
	switch {
	case work == 0 && err == nil:
		v.taken = append(v.taken, fmt.Sprintf("late-%d", v.round))
	case work == 1 && err == nil:
		v.state = "first"
	case work == 1: // either of both
		v.state = ""
	}
}

func clone(image string) options.Box {
	o := options.Defaults()
	o.Image, o.CPUs, o.MemoryMiB, o.Network, o.AutoRemove = image, 1, 64, options.NetworkNone, false
	return o
}

// check wants the box to have its disk, and each snapshot what was on it.
func (v *victim) check() {
	v.t.Helper()
	v.up()
	got := strings.TrimSpace(v.sh(v.box, "cat /file"))
	if got != "first" && got != "second" || v.state != "" && got != v.state {
		v.t.Errorf("round %d: the box has %q, and not %q", v.round, got, v.state)
	}
	for i, name := range v.taken {
		b := v.home.box(name)
		if got, want := strings.TrimSpace(v.sh(b, "cat /file")), []string{"first", "second"}[i]; got != want {
			v.t.Errorf("round %d: snapshot %s has %q, and not %q", v.round, name, got, want)
		}
		must(v.t, b.Remove(v.t.Context(), true))
	}
}

// up waits until a new shim has settled what the old one had begun, and starts the box if
// it was stopped.
func (v *victim) up() {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	for {
		rec, err := v.box.Record(ctx)
		must(v.t, err)
		switch {
		case rec.Status == api.Running:
			if _, err := v.box.Run(ctx, "true"); err == nil {
				return
			}
		case !rec.Status.Up():
			if _, err := v.box.Start(ctx); err != nil && !fault.Is(err, fault.InvalidState) {
				must(v.t, err)
			}
		}
		must(v.t, ctx.Err())
		time.Sleep(10 * time.Millisecond) // the record says nothing of a rollback that goes on
	}
}

// onlyBase wants no layer but that of the image "base", and no directory of a box.
func (h home) onlyBase() {
	h.t.Helper()
	h.onlyLayers()
	left, err := os.ReadDir(filepath.Join(h.Home, "boxes"))
	must(h.t, err)
	for _, e := range left {
		h.t.Errorf("left: %s", e.Name())
	}
}

// onlyLayers wants no layer but that of the image "base".
func (h home) onlyLayers() {
	h.t.Helper()
	base, err := h.Images.Inspect("base")
	must(h.t, err)
	layers, err := filepath.Glob(filepath.Join(h.Home, "layers", "*"))
	must(h.t, err)
	for _, path := range layers {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if st, err := os.Stat(path); err == nil && (st.IsDir() || strings.HasSuffix(path, ".json")) && "sha256:"+name != base.Layers[0] {
			h.t.Errorf("left: %s", path)
		}
	}
}
