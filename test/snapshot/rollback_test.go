package snapshot_test

import (
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/test/boxes"
	"sandbox/test/frozen"
)

// TestRollbackCutOff has the shim die in a rollback. One that has not begun to stop the box
// is forgotten: the box goes on, and what is done in it from then on stays. Any other is done
// by the next shim.
func TestRollbackCutOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stopping bool
		want     string
	}{
		"before the box was told to stop": {false, "later\n"},
		"once the box was told to stop":   {true, "early\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			b := h.early()
			must(t, syscall.Kill(boxes.ShimPID(t, h.Home), syscall.SIGKILL))
			records := record.Open(h.Home)
			rec, err := records.Get(b.ID())
			must(t, err)
			returning := slices.Clone(rec.Taken)
			rec.Returning, rec.Stopping = &returning, c.stopping
			must(t, records.Put(b.ID(), rec, true))
			h.sh(b, "echo later >/file")
			must(t, h.Engine.Flush(t.Context())) // starts the next shim
			if got := h.again(b); got != c.want {
				t.Errorf("the box has %q, want %q", got, c.want)
			}
		})
	}
}

// TestRollbackShortOfDescriptors has the shim run out of descriptors once it has noted a
// rollback. The rollback fails, and is not done later.
func TestRollbackShortOfDescriptors(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := h.early()
	enough := boxes.OneDescriptor(t, boxes.ShimPID(t, h.Home))
	_, err := b.Rollback(t.Context(), "early")
	if !fault.Is(err, fault.ResourceExhausted) {
		t.Errorf("got %v, want resource_exhausted", err)
	}
	enough()
	h.sh(b, "echo later >/file")
	if got := h.again(b); got != "later\n" {
		t.Errorf("after a rollback that failed, the box has %q", got)
	}
}

// TestRollbackFails has a rollback of a stopped box fail once it is noted. The next snapshot
// of the box does it first, as the next start would.
func TestRollbackFails(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	b := h.early()
	h.stop(b)
	thaw := frozen.Dir(t, filepath.Join(h.Home, "boxes", b.ID()))
	if _, err := b.Rollback(t.Context(), "early"); !fault.Is(err, fault.Storage) {
		t.Errorf("got %v, want storage_error", err)
	}
	thaw()
	h.snapshot(b, "then")
	h.start(b)
	for _, of := range []*core.Box{h.box("then"), b} {
		if got := h.sh(of, "cat /file"); got != "early\n" {
			t.Errorf("box %s has %q", of.ID(), got)
		}
	}
}

// early makes a box whose file is "early" in the snapshot "early", and "late" now.
func (h home) early() *core.Box {
	h.t.Helper()
	b := h.box("base")
	h.sh(b, "echo early >/file")
	h.stop(b)
	h.snapshot(b, "early")
	h.start(b)
	h.sh(b, "echo late >/file")
	return b
}

// again stops a box, starts it, and returns what its file has then.
func (h home) again(b *core.Box) string {
	h.t.Helper()
	h.stop(b)
	h.start(b)
	return h.sh(b, "cat /file")
}
