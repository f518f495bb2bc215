package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/options"
)

// The space becomes low once, however it goes up and down around the bound.
func TestWatermark(t *testing.T) {
	t.Parallel()
	var w watermark
	for i, step := range []struct {
		free    uint64
		crossed bool
	}{{100, false}, {20, false}, {19, true}, {21, false}, {19, false}, {5, false}, {29, false}, {19, false}, {30, false}, {19, true}} {
		if got := w.crossed(Space{Free: step.free, Floor: 10}); got != step.crossed {
			t.Errorf("step %d: crossed to %d: %v", i, step.free, got)
		}
	}
	if (Space{Free: 0, Floor: 0}).Low() {
		t.Error("a home without a floor is low on space")
	}
}

// The largest boxes come first, under their names.
func TestLargest(t *testing.T) {
	t.Parallel()
	c := Config{Home: t.TempDir()}
	for id, box := range map[string]struct {
		name string
		mib  int
	}{"box_aaaaaaaaaaaaaaaaaaaa": {"small", 1}, "box_bbbbbbbbbbbbbbbbbbbb": {"", 3}, "box_cccccccccccccccccccc": {"middle", 2}} {
		b := record.Box{Record: core.Record{ID: id, Options: options.Box{Name: box.name}}}
		upper := filepath.Join(record.Dir(c.Home, id), "upper")
		err := errors.Join(record.Open(c.Home).Put(id, b, false), os.MkdirAll(upper, 0o700),
			os.WriteFile(filepath.Join(upper, "file"), make([]byte, box.mib<<20), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	boxes, err := c.Largest(t.Context(), 2)
	if got := Names(boxes); err != nil || got != "box_bbbbbbbbbbbbbbbbbbbb 3 MiB, middle 2 MiB" {
		t.Errorf("got %q, %v", got, err)
	}
}
