package snapshot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/image/layer"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// deepen takes so many snapshots of a box that is stopped, and returns the last one.
func (h home) deepen(b *core.Box, prefix string, n int) (last api.Snapshot) {
	h.t.Helper()
	for i := range n {
		last = h.snapshot(b, fmt.Sprint(prefix, i))
		if most := 128; len(last.Layers) > most {
			h.t.Fatalf("snapshot %d has %d layers", i, len(last.Layers))
		}
	}
	return last
}

// settled waits until no layers are being merged.
func (h home) settled() {
	h.t.Helper()
	for {
		going, err := filepath.Glob(filepath.Join(h.Home, "engine", "merging-*"))
		must(h.t, err)
		if len(going) == 0 {
			return
		}
		must(h.t, h.t.Context().Err())
		time.Sleep(10 * time.Millisecond) // nobody tells of a merge in the background
	}
}

// A box that is stopped can be taken again and again: its layers are merged before there
// are more than a box can stand on. Nobody sees a difference.
func TestDepth(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]func(o *options.Box){"a directory": kinds["a directory"], "a disk of a size": kinds["a disk of a size"]} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			b := h.box("base", change)
			h.sh(b, fill)
			want := h.sh(b, tell)
			h.stop(b)
			h.deepen(b, "s", 250)
			h.settled()
			last := h.snapshot(b, "last")
			if len(last.Layers) >= layer.SquashFrom {
				t.Errorf("the last snapshot has %d layers", len(last.Layers))
			}
			h.start(b)
			deep := map[string]*core.Box{"the box": b, "a box of the last snapshot": h.box("last"), "a box of an early one": h.box("s90"), "a box of a deep one": h.box("s120")}
			for name, box := range deep {
				if got := h.sh(box, tell); got != want {
					t.Errorf("%s tells\n%swant\n%s", name, got, want)
				}
			}
			if got := diff(t, b, "s200", ""); got != "" {
				t.Errorf("since a snapshot, before which its layers were merged: %s", got)
			}
			h.inRow(b)
		})
	}
}

// inRow wants each snapshot of a box to stand on the one before it.
func (h home) inRow(b *core.Box) {
	h.t.Helper()
	all, err := h.Snapshots(h.t.Context(), b.ID())
	must(h.t, err)
	for i := range all[1:] {
		if all[i+1].Parent != all[i].ID {
			h.t.Errorf("%s stands on %s, and not on %s (%s)", all[i+1].Name, all[i+1].Parent, all[i].Name, all[i].ID)
		}
	}
}

// A box that runs keeps its layers, and its snapshots stand on fewer; when it is started again
// it stands on the merged one. What was merged is removed once nothing stands on it.
func TestSquash(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := h.box("base")
	h.sh(b, "mkdir -p /d/e; echo 1 >/d/e/f; echo hidden >/d/g; rm /etc/group")
	h.stop(b)
	h.deepen(b, "a", layer.SquashFrom-10)
	h.start(b)
	h.sh(b, "rm -r /d/e; mkdir /d/e; echo 2 >/d/e/h; rm /d/g; echo back >/etc/group")
	const look = "cd /d; find . | sort; cat e/h /etc/group"
	want := h.sh(b, look)
	h.stop(b)
	h.deepen(b, "b", 20)
	h.start(b) // while they are merged, or after that
	h.settled()
	taken := h.snapshot(b, "running")
	if len(taken.Layers) >= layer.SquashFrom {
		t.Errorf("a snapshot of a box that runs has %d layers", len(taken.Layers))
	}
	h.stop(b)
	h.start(b)
	for name, box := range map[string]*core.Box{"the box": b, "a box of a snapshot": h.box("running"), "a box of a deep snapshot": h.box("b19")} {
		if got := h.sh(box, look); got != want {
			t.Errorf("%s has\n%swant\n%s", name, got, want)
		}
	}
	_, err := b.Rollback(t.Context(), "a3")
	must(t, err)
	if got := h.sh(b, "cat /d/e/f /d/g; ls /etc/group 2>&1"); got != "1\nhidden\nls: /etc/group: No such file or directory\n" {
		t.Errorf("after a rollback: %s", got)
	}
	must(t, b.Remove(t.Context(), true))
	all, err := h.List(t.Context())
	must(t, err)
	for _, rec := range all {
		must(t, h.At(rec.ID).Remove(t.Context(), true))
	}
	_, err = h.Images.Prune(t.Context(), true)
	must(t, err)
	left, err := filepath.Glob(filepath.Join(h.Home, "layers", "*"))
	must(t, err)
	for _, path := range left {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			t.Errorf("left: %s", path)
		}
	}
}

// The layers of a deep snapshot are merged for boxes that are made from it, also those that
// lie below the box that was taken. That box can be rolled back to the snapshot all the same.
// A prune keeps the snapshot, and the tree tells of its boxes, while a box was made from it.
func TestSquashOfASnapshot(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	a := h.box("base")
	h.stop(a)
	h.deepen(a, "a", layer.SquashFrom/2)
	from := fmt.Sprint("a", layer.SquashFrom/2-1)
	b := h.box(from)
	h.sh(b, "echo good >/file")
	h.stop(b)
	h.deepen(b, "b", layer.SquashFrom/2-1)
	h.start(b) // before they are merged, as a rule
	deepest := fmt.Sprint("b", layer.SquashFrom/2-2)
	h.awaitMerged(deepest, 1)                    // for boxes of the snapshot
	h.awaitMerged(deepest, 1+layer.SquashFrom/2) // for this box
	h.snapshot(b, "running")
	h.inRow(b)
	deep := h.merged(b)
	if len(deep) == 0 {
		t.Fatal("no snapshot has so many layers that they are merged")
	}
	for _, snapshot := range append(deep, "running", "b3") {
		h.sh(b, "echo bad >/file")
		if _, err := b.Rollback(t.Context(), snapshot); err != nil {
			t.Errorf("to %s: %v", snapshot, err)
		} else if got := h.sh(b, "cat /file"); got != "good\n" {
			t.Errorf("%s has %q", snapshot, got)
		} else if got := diff(t, b, snapshot, ""); got != "" {
			t.Errorf("since %s, to which the box was rolled back: %s", snapshot, got)
		}
	}
	c := h.box(deep[0])
	if got := h.sh(c, "cat /file"); got != "good\n" {
		t.Errorf("a box of a deep snapshot has %q", got)
	}
	made := map[string]*core.Box{from: b, deep[0]: c}
	h.madeOf(made)
	_, err := h.Images.Prune(t.Context(), true)
	must(t, err)
	h.madeOf(made)
}

// awaitMerged waits until the layers of a snapshot were merged, but for so many of the lowest.
func (h home) awaitMerged(snapshot string, least int) {
	h.t.Helper()
	_, layers, err := h.Images.Stack(snapshot)
	must(h.t, err)
	for merged := layer.Merged(layers[least:]); !layer.OnDisk(merged); {
		must(h.t, h.t.Context().Err())
		time.Sleep(10 * time.Millisecond) // nobody tells of a merge in the background
	}
}

// merged returns the snapshots of a box whose layers were merged for the boxes of them.
func (h home) merged(b *core.Box) (names []string) {
	h.t.Helper()
	all, err := h.Snapshots(h.t.Context(), b.ID())
	must(h.t, err)
	for _, node := range all {
		img, err := h.Images.Resolve(h.t.Context(), node.Name)
		must(h.t, err)
		if len(img.Layers) < len(node.Layers) {
			names = append(names, node.Name)
		}
	}
	return names
}

// madeOf wants snapshots to be there, and to tell of boxes that were made from them.
func (h home) madeOf(want map[string]*core.Box) {
	h.t.Helper()
	all, err := h.Snapshots(h.t.Context(), "")
	must(h.t, err)
	told := map[string][]string{}
	for _, node := range all {
		told[node.Name] = node.Boxes
	}
	for snapshot, b := range want {
		if img, err := h.Images.Inspect(snapshot); err != nil {
			h.t.Error(err)
		} else if boxes := told[img.Name]; !slices.Contains(boxes, b.ID()) {
			h.t.Errorf("snapshot %s tells of the boxes %q, and not of %s", snapshot, boxes, b.ID())
		}
	}
}

// forget removes the snapshots whose names begin so.
func (h home) forget(prefix string) {
	h.t.Helper()
	all, err := h.Snapshots(h.t.Context(), "")
	must(h.t, err)
	for _, n := range all {
		if strings.HasPrefix(n.Name, prefix) {
			must(h.t, h.Images.Remove(h.t.Context(), n.Name, true))
		}
	}
}

// A shim that is killed while it merges layers leaves the box and its snapshots as they were,
// and nothing else.
func TestSquashKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for round := range max(*kills/6, 1) {
		b := h.box("base")
		h.sh(b, "echo deep >/file; head -c 3000000 /dev/urandom >/bulk; mkdir /many; cd /many; seq 2000 | xargs touch; sync")
		h.stop(b)
		h.deepen(b, fmt.Sprintf("r%d-", round), layer.SquashFrom-2)
		pid := boxes.ShimPID(t, h.Home)
		done := make(chan error, 1)
		go func() {
			_, err := b.Snapshot(context.WithoutCancel(t.Context()), fmt.Sprintf("r%d-last", round))
			done <- err
		}()
		time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond)))) // any moment of the merge
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-done
		v := &victim{home: h, round: round, box: b}
		v.up()
		for name, box := range map[string]*core.Box{"the box": b, "a box of a snapshot": h.box(fmt.Sprintf("r%d-90", round))} {
			if got := h.sh(box, "cat /file; ls /many | wc -l"); got != "deep\n2000\n" {
				t.Errorf("round %d: %s has %q", round, name, got)
			}
			must(t, box.Remove(t.Context(), true))
		}
		h.forget(fmt.Sprintf("r%d-", round))
	}
	h.settled()
	_, err := h.Images.Prune(t.Context(), false)
	must(t, err)
	h.onlyLayers()
}
