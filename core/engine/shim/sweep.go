package shim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"

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

// load takes over the boxes of an earlier shim. It adopts those that run, writes
// to the records of the others that they have ended, and removes what was never
// finished, the spares too. A box's record is written before its objects are made,
// and a spare's directory is made before, so every object of ours has one of these.
func (k *keeper) load() error {
	if err := errors.Join(k.records.Sweep(), layer.Sweep(k.layers()), k.sweepMerges()); err != nil {
		return err
	}
	recs, damaged, err := k.records.List()
	if err != nil {
		return err
	}
	for _, d := range damaged {
		if k.passed(d) {
			err = errors.Join(err, k.records.Delete(d.Key)) // sweepDirs removes the rest
		} else {
			k.setAside(d)
		}
	}
	if err != nil {
		return err
	}
	for _, b := range k.known(recs) {
		err := k.takeOver(b)
		if fault.Is(err, fault.ResourceExhausted) {
			return err // going on would take a box that can't be watched for dead
		}
		if err != nil {
			k.log.Error("adopt a box", "box", b.record().ID, "error", err)
		}
	}
	for _, rec := range recs {
		if rec.Owner.PID != 0 && k.find(rec.ID) != nil {
			k.watchOwner(rec.Owner)
		}
	}
	k.sweepGroups()
	if err := k.outputs.Sweep(context.Background(), k.mains); err != nil {
		return err
	}
	return k.sweepDirs()
}

// known makes the boxes of records known. It returns them with those first that are up:
// their times may have come, and cleaning up after the others takes long.
func (k *keeper) known(recs []record.Box) []*box {
	k.mu.Lock()
	defer k.mu.Unlock()
	var up, over []*box
	for _, rec := range recs {
		b := &box{rec: rec}
		k.boxes[rec.ID] = b
		if rec.Status.Up() {
			up = append(up, b)
		} else {
			over = append(over, b)
		}
	}
	return append(up, over...)
}

// passed reports whether a damaged record is that of a box which a power cut has
// ended and which was to be removed then. Only such records are not put durably, so
// theirs may be empty; overlayfs marks the disk of such a box as volatile.
func (k *keeper) passed(d store.Damaged) bool {
	dir := record.Dir(k.home, d.Key)
	return d.Empty && (!exists(dir) || exists(filepath.Join(dir, "work", "work", "incompat", "volatile")))
}

// setAside moves a damaged record away and puts one in its place that says what
// happened. It kills the box's processes, as nothing else is known of the box.
// The box counts as failed, and can be removed with all that it has.
func (k *keeper) setAside(d store.Damaged) {
	file, err := k.records.SetAside(d.Key)
	k.log.Error("a damaged record was set aside", "file", file, "damage", d.Err, "error", err)
	if !ids.Box.Valid(d.Key) || err != nil {
		return
	}
	groups(d.Key).kill()
	k.launcher.clean(d.Key)
	d.Err = fault.New(fault.Storage, "the record of this box was damaged and was moved to %s: remove the box", file)
	b := &box{rec: record.OfDamaged(d)}
	k.boxes[d.Key] = b
	if err := k.records.Put(d.Key, b.rec, true); err != nil {
		k.log.Error("replace a damaged record", "box", d.Key, "error", err)
	}
}

// mend writes the record of a box again if it was damaged while this shim runs,
// as the shim knows what it held, and the end of a box that could not be written.
func (k *keeper) mend(b *box) {
	rec := b.record()
	switch _, err := k.records.Get(rec.ID); {
	case errors.Is(err, store.ErrDamaged):
		err := k.records.Put(rec.ID, rec, true)
		k.log.Error("a damaged record was written again", "box", rec.ID, "error", err)
	case b.isStale() && !errors.Is(err, os.ErrNotExist):
		_ = k.writeEnd(b) // its failure was logged when the box ended
	}
}

// takeOver adopts a box that runs, or else corrects its record. A box whose
// record does not say that it runs may still have kernel objects, and even a
// running init, if an earlier shim died while it started the box. takeOver
// removes them.
func (k *keeper) takeOver(b *box) error {
	k.takeBack(b)
	rec := &b.rec
	if rec.Pausing || rec.Status == api.Paused {
		// Now, before anybody may remove the box: a file system that stands still outlives it.
		if err := k.releaseDisk(rec.ID); err != nil {
			k.log.Error("let the disk of a box go on", "box", rec.ID, "error", err)
		}
	}
	if rec.Status.Up() {
		h, err := process.Open(rec.Init)
		if err == nil {
			was := *rec // from here on its time may come
			// init is no child of this shim; its present parent reaps it.
			f := &life{slot: rec.Slot(), init: rec.Init, handle: h, reap: func() {}, net: k.takeOverNetwork(rec)}
			k.adopt(b, f)
			k.serveAgain(b, f)
			k.settle(b, was)
			return nil
		}
		if !errors.Is(err, os.ErrProcessDone) {
			return fault.Wrap(fault.ResourceExhausted, err, "watch box %s: raise the limit of open files (ulimit -n) of the program that starts the shim", rec.ID)
		}
	}
	groups(rec.Slot()).kill()
	k.launcher.clean(rec.Slot())
	switch corrected := rec.Correct(); {
	case rec.Status == api.Created, rec.Removing, corrected && rec.Passes():
		return k.forget(b)
	case corrected:
		if err := k.records.Put(rec.ID, *rec, true); err != nil {
			return err
		}
	}
	return k.settleDisk(b)
}

// settleDisk finishes what an earlier shim had begun to do with the disk of a box that does
// not run, and removes what it has left.
func (k *keeper) settleDisk(b *box) error {
	if err := errors.Join(k.settleRollback(b), k.settleTaken(b.record())); err != nil {
		return err
	}
	if rec := b.record(); rec.Merged != "" {
		rec.Merged = ""
		if err := k.put(b, rec); err != nil {
			return err
		}
	}
	dir := record.Dir(k.home, b.record().ID)
	return fault.Disk(errors.Join(os.RemoveAll(filepath.Join(dir, taking)), removeDropped(dir)), "sweep the disk of box %s", b.record().ID)
}

// settle ends what an earlier shim had begun with a box that is up; was is the record that
// it left. Requests for the box wait for that: whoever asked for a rollback or a stop that
// broke off asks again, and it would be done once more behind the answer.
func (k *keeper) settle(b *box, was record.Box) {
	var work func() error
	switch {
	case was.Removing:
		work = func() error { return k.removeBox(b) }
	case was.Returning != nil:
		work = func() error { return k.finishRollback(b, was) }
	case was.Stopping:
		work = func() error { return k.finishStop(b, was) }
	case was.Pausing, was.Status == api.Paused:
		work = func() error { return k.settlePause(b) }
	default:
		k.lookNow(b)
		return
	}
	b.change.Lock()
	k.idle.enter()
	go func() {
		defer k.idle.leave()
		defer b.change.Unlock()
		b.awaitEnd()
		if err := work(); err != nil && !fault.Is(err, fault.InvalidState) { // it has ended by itself
			k.log.Error("go on with what an earlier shim had begun", "box", was.ID, "error", err)
		}
	}()
}

// finishRollback rolls a box back that was up when an earlier shim had begun to. The caller
// holds b.change.
func (k *keeper) finishRollback(b *box, was record.Box) error {
	_, err := k.rollback(b, slices.Concat(was.Image.Layers, *was.Returning))
	return err
}

// finishStop stops a box whose stop an earlier shim began and did not finish. The caller
// holds b.change.
func (k *keeper) finishStop(b *box, was record.Box) error {
	grace := core.DefaultGrace
	if was.Expired {
		grace = expiryGrace
	}
	_, err := k.stopBox(b, grace)
	return err
}

// sweepDirs removes the directories of boxes that have no record any more, and of
// spares of an earlier shim, with all that is in their slots. A damaged record
// counts as a record.
func (k *keeper) sweepDirs() error {
	for _, parent := range []string{filepath.Join(k.home, "boxes"), k.launcher.state} {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.Disk(err, "sweep the home")
		}
		used := k.names() // known before there is a directory
		for _, e := range entries {
			if _, err := k.records.Get(e.Name()); used[e.Name()] || !errors.Is(err, os.ErrNotExist) {
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
// directory is left. The groups of the boxes of all homes on the host are in one
// directory. A group with processes belongs to this home if a process in it has
// the home's mark. A group without processes may be removed by any home's shim
// once it is so old that no shim can be about to put a process into it.
func (k *keeper) sweepGroups() {
	found := boxGroups()
	used := k.names() // known before there are groups
	for slot, path := range found {
		if used[slot] {
			continue
		}
		st, err := os.Stat(path)
		_, unclean := k.launcher.unclean.Load(slot)
		switch {
		case unclean || slices.ContainsFunc(firstProcesses(path), k.bears):
			groups(slot).kill()
			k.launcher.clean(slot)
		case err == nil && time.Since(st.ModTime()) > minGroupAge && len(groups(slot).processes()) == 0:
			_ = groups(slot).remove() // another home's shim may be faster
		}
	}
}

// names returns the ids of all boxes, and the slots of these and of the spares.
func (k *keeper) names() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	used := map[string]bool{}
	for id, b := range k.boxes {
		used[id], used[b.record().Slot()] = true, true
	}
	for _, s := range k.pool.all() {
		used[s.slot] = true
	}
	return used
}

// boxGroups returns a group of each box of the host that has any, by its slot.
func boxGroups() map[string]string {
	found := map[string]string{}
	for _, root := range hierarchies(groupRoot()) {
		paths, _ := filepath.Glob(filepath.Join(root, groupParent, "box_*")) // only a bad pattern fails
		for _, path := range paths {
			found[filepath.Base(path)] = path
		}
	}
	return found
}

// firstProcesses returns the processes among which a box's init is: those of the
// group itself or, on pure cgroup2, of the one below it that is for init. All
// processes of all boxes of the host would take seconds to look at.
func firstProcesses(path string) []int {
	var all []int
	for _, dir := range []string{path, filepath.Join(path, initDir)} {
		pids, _ := cgroups.GetPids(dir) // a group that has gone has none
		all = append(all, pids...)
	}
	return all
}

// bears reports whether a process has the mark of this home in its environment.
func (k *keeper) bears(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(strings.Split(string(env), "\x00"), homeMark(k.launcher.home))
}

// sweep removes the boxes that ended at least older ago, and directories and
// groups that belong to no box. It goes on after a failure, and returns what it
// removed together with all errors.
func (k *keeper) sweep(older time.Duration) (wire.Swept, error) {
	var swept wire.Swept
	var failed []error
	before := time.Now().Add(-older)
	for _, b := range k.all() {
		rec := b.record()
		if !rec.OverSince(before) {
			continue
		}
		size, err := k.sweepBox(rec.ID, before)
		switch {
		case err == nil:
			swept.Boxes = append(swept.Boxes, rec.ID)
			swept.Bytes += size
		case !fault.Is(err, fault.BoxNotFound) && !fault.Is(err, fault.InvalidState): // these two mean that another client was faster
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
	size = layer.DiskUse(record.Dir(k.home, id), math.MaxInt).Bytes
	k.removing(b)
	return size, k.forget(b)
}

func (k *keeper) all() []*box {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.boxes))
}
