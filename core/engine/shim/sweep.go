package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/image/layer"
	"sandbox/core/store"
)

// load takes over the boxes of an earlier shim: it adopts those that run,
// notes those that have ended, and removes what was never finished. Records
// were written before objects, so nothing of ours is without one.
func (k *keeper) load() error {
	if err := errors.Join(k.records.Sweep(), layer.Sweep(k.layers())); err != nil {
		return err
	}
	recs, damaged, err := k.records.List()
	if err != nil {
		return err
	}
	for _, d := range damaged {
		k.setAside(d)
	}
	for _, rec := range recs {
		b := &box{rec: rec}
		k.boxes[rec.ID] = b
		err := k.takeOver(b)
		if fault.Is(err, fault.ResourceExhausted) {
			return err // a box that can't be watched would be taken for dead
		}
		if err != nil {
			k.log.Error("take over a box", "box", rec.ID, "error", err)
		}
	}
	for _, rec := range recs {
		if rec.Owner.PID != 0 && k.boxes[rec.ID] != nil {
			k.watchOwner(rec.Owner)
		}
	}
	k.sweepGroups()
	return k.sweepDirs()
}

// setAside puts a record that says what happened in the place of a damaged one.
// Its box, of which nothing else is known, is ended: it has failed, and can be
// removed with all that it has.
func (k *keeper) setAside(d store.Damaged) {
	file, err := k.records.SetAside(d.Key)
	k.log.Error("a damaged record was set aside", "file", file, "damage", d.Err, "error", err)
	if !ids.Box.Valid(d.Key) || err != nil {
		return
	}
	groups(d.Key).kill()
	k.launcher.clean(d.Key)
	d.Err = fault.New(fault.Storage, "the record of this box was damaged, and lies in %s: remove the box", file)
	b := &box{rec: record.OfDamaged(d)}
	k.boxes[d.Key] = b
	if err := k.records.Put(d.Key, b.rec, true); err != nil {
		k.log.Error("note a damaged record", "box", d.Key, "error", err)
	}
}

// mend writes the record of a box anew that was damaged under this shim, which
// knows what it held.
func (k *keeper) mend(b *box) {
	rec := b.record()
	if _, err := k.records.Get(rec.ID); !errors.Is(err, store.ErrDamaged) {
		return
	}
	err := k.records.Put(rec.ID, rec, true)
	k.log.Error("a damaged record was written anew", "box", rec.ID, "error", err)
}

// takeOver brings one box and its record together. A box that does not run has
// no kernel objects but those that a start left which died with its shim: its
// record says stopped, and its init may live.
func (k *keeper) takeOver(b *box) error {
	rec := &b.rec
	if rec.Status == api.Running {
		h, err := process.Open(rec.Init)
		if err == nil {
			// Not a child of this shim: whoever is its parent now reaps it.
			k.adopt(b, &life{init: rec.Init, handle: h, reap: func() {}, net: k.takeOverNetwork(rec)})
			if rec.Stopping {
				go k.finishStop(rec.ID)
			}
			return nil
		}
		if !errors.Is(err, os.ErrProcessDone) {
			return fault.Wrap(fault.ResourceExhausted, err, "watch box %s: raise the limit of open files (ulimit -n) of whoever starts the shim", rec.ID)
		}
	}
	groups(rec.ID).kill()
	k.launcher.clean(rec.ID)
	switch corrected := rec.Correct(); {
	case rec.Status == api.Created, corrected && rec.Options.AutoRemove:
		return k.forget(b)
	case corrected:
		return k.records.Put(rec.ID, *rec, true)
	}
	return nil
}

// finishStop ends a box whose stop an earlier shim began and did not finish.
func (k *keeper) finishStop(id string) {
	_, err := k.stop(id, core.DefaultGrace)
	if err != nil && !fault.Is(err, fault.InvalidState) && !fault.Is(err, fault.BoxNotFound) {
		k.log.Error("finish the stop of a box", "box", id, "error", err)
	}
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

// sweepGroups removes the groups of boxes of which neither a record nor a
// directory is left. All homes of the host have their boxes' groups in one
// directory: a group with processes is this home's where the init in it bears
// its mark, and one without is anybody's to remove once nobody can be about to
// fill it.
func (k *keeper) sweepGroups() {
	for _, root := range hierarchies(groupRoot()) {
		paths, _ := filepath.Glob(filepath.Join(root, groupParent, "box_*")) // only a bad pattern fails
		for _, path := range paths {
			id := filepath.Base(path)
			if k.find(id) != nil {
				continue
			}
			pids := groups(id).processes()
			st, err := os.Stat(path)
			switch {
			case slices.ContainsFunc(pids, k.bears):
				groups(id).kill()
				k.launcher.clean(id)
			case len(pids) == 0 && err == nil && time.Since(st.ModTime()) > minGroupAge:
				_ = groups(id).remove() // another home's shim may be faster
			}
		}
	}
}

// bears tells whether a process bears the mark of this home.
func (k *keeper) bears(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(strings.Split(string(env), "\x00"), homeMark(k.launcher.home))
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
	k.sweepGroups()
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
