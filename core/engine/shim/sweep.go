package shim

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sandbox/api"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// load takes over the boxes of an earlier shim: it adopts those that run,
// notes those that have ended, and removes what was never finished. Records
// were written before objects, so nothing of ours is without one.
func (k *keeper) load() error {
	if err := errors.Join(k.records.Sweep(), layer.Sweep(k.layers())); err != nil {
		return err
	}
	recs, err := k.records.List()
	if err != nil {
		// A damaged record hides no other; its box waits for a person.
		k.log.Error("read records", "error", err)
	}
	for _, rec := range recs {
		b := &box{rec: rec}
		k.boxes[rec.ID] = b
		if err := k.takeOver(b); err != nil {
			k.log.Error("take over a box", "box", rec.ID, "error", err)
		}
	}
	for _, rec := range recs {
		if rec.Owner.PID != 0 && k.boxes[rec.ID] != nil {
			k.watchOwner(rec.Owner)
		}
	}
	return k.sweepDirs()
}

// takeOver brings one box and its record together.
func (k *keeper) takeOver(b *box) error {
	rec := &b.rec
	if rec.Status == api.Running {
		if h, err := process.Open(rec.Init); err == nil {
			// Not a child of this shim: whoever is its parent now reaps it.
			k.adopt(b, &life{init: rec.Init, handle: h, reap: func() {}, net: k.takeOverNetwork(rec)})
			return nil
		}
	}
	if rec.Status == api.Created || rec.Status == api.Running {
		groups(rec.ID).kill()
		k.launcher.clean(rec.ID)
	}
	switch {
	case rec.Status == api.Created, rec.Correct() && rec.Options.AutoRemove:
		return k.forget(b)
	case rec.Status == api.Failed:
		return k.records.Put(rec.ID, *rec, true)
	}
	return nil
}

// sweepDirs removes directories of boxes that have no record any more; a record
// that is damaged is one.
func (k *keeper) sweepDirs() error {
	for _, parent := range []string{filepath.Join(k.home, "boxes"), k.launcher.state} {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.Disk(err, "sweep the home")
		}
		for _, e := range entries {
			if _, err := k.records.Get(e.Name()); !errors.Is(err, os.ErrNotExist) {
				continue
			}
			groups(e.Name()).kill()
			k.launcher.clean(e.Name())
			if err := os.RemoveAll(record.Dir(k.home, e.Name())); err != nil {
				return fault.Disk(err, "sweep the home")
			}
		}
	}
	return nil
}

// sweep removes boxes that have been over for at least as long as older, and
// directories that no box has. It goes on past what fails.
func (k *keeper) sweep(older time.Duration) (wire.Swept, error) {
	var swept wire.Swept
	var failed []error
	before := time.Now().Add(-older)
	for _, b := range k.all() {
		if !b.record().OverSince(before) {
			continue
		}
		size, err := k.sweepBox(b.rec.ID, before)
		switch {
		case err == nil:
			swept.Boxes = append(swept.Boxes, b.rec.ID)
			swept.Bytes += size
		case !fault.Is(err, fault.BoxNotFound) && !fault.Is(err, fault.InvalidState): // else another was faster
			failed = append(failed, err)
		}
	}
	return swept, errors.Join(append(failed, k.sweepDirs())...)
}

func (k *keeper) sweepBox(id string, before time.Time) (size int64, err error) {
	b, err := k.lock(id)
	if err != nil {
		return 0, err
	}
	defer b.change.Unlock()
	if !b.record().OverSince(before) {
		return 0, fault.New(fault.InvalidState, "box %s was started", id)
	}
	size = diskUse(record.Dir(k.home, id))
	return size, k.forget(b)
}

func (k *keeper) all() []*box {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.boxes))
}

// diskUse returns what the files below a directory take of the disk, as far as it
// can be told.
func diskUse(dir string) int64 {
	var size int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // the rest counts
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				size += st.Blocks * 512
			}
		}
		return nil
	})
	return size
}
