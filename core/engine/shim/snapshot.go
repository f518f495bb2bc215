package shim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// maxLayers is how many layers a box can stand on. With the paths of so many, the options
// of an overlay mount fit into the one page that the kernel takes.
const maxLayers = 128

// standStill bounds how long a box stands still for a snapshot. A disk that can't be copied
// in this time is taken while the box is stopped, which needs no copy.
const standStill = time.Minute

// taking is the name, in the directory of a box, of a layer that is being made of its disk.
const taking = "taking"

// answerSnapshot makes a layer of the disk of a box as it is now.
func (k *keeper) answerSnapshot(f wire.Frame) (wire.Taken, error) {
	var r wire.Snapshot
	if err := f.Decode(&r); err != nil {
		return wire.Taken{}, err
	}
	taken, err := k.snapshot(r)
	if err == nil {
		k.flush()
	}
	return taken, err
}

func (k *keeper) snapshot(r wire.Snapshot) (wire.Taken, error) {
	if key, err := hex.DecodeString(r.Layer); err != nil || len(key) != sha256.Size {
		return wire.Taken{}, fault.New(fault.Engine, "%q is not the key of a layer", r.Layer)
	}
	b, err := k.lock(r.ID)
	if err != nil {
		return wire.Taken{}, err
	}
	defer b.change.Unlock()
	if err := checkSnapshot(b.record()); err != nil {
		return wire.Taken{}, err
	}
	if !b.record().Status.Up() {
		if err := k.settleRollback(b); err != nil { // one that failed; the box's next start would do it
			return wire.Taken{}, err
		}
	}
	below, err := k.below(b)
	if err != nil {
		return wire.Taken{}, err
	}
	to := filepath.Join(k.layers(), r.Layer)
	taken := wire.Taken{Image: wire.Image(b.record().Image)}
	taken.Image.Layers = append(slices.DeleteFunc(below, func(dir string) bool { return dir == to }), to)
	if !exists(to) { // else an earlier shim has died before it could answer
		err = k.take(b, r.Last, to, &taken)
	}
	if err == nil {
		k.squashLater(r.ID, taken.Image.Layers)
	}
	return taken, err
}

// take makes a layer of the disk of a box, which is removed then if it is the last one of it.
// The caller holds b.change.
func (k *keeper) take(b *box, last bool, to string, taken *wire.Taken) error {
	switch {
	case last:
		return k.finish(b, to)
	case !b.record().Status.Up():
		return k.takeDisk(b, to)
	}
	still, err := k.copyDisk(b, to)
	taken.PausedUS = still.Microseconds()
	return err
}

// finish ends a box, makes its disk the layer to, and removes the box. The caller holds
// b.change.
func (k *keeper) finish(b *box, to string) error {
	b.mu.Lock()
	b.becomes = to
	rec := b.rec
	b.mu.Unlock()
	if !rec.Status.Up() {
		k.giveDisk(rec, to)
	}
	if err := k.removeBox(b); err != nil {
		return err
	}
	if !exists(to) {
		return fault.New(fault.Storage, "the disk of box %s could not become a layer: the shim's log says why", rec.ID)
	}
	return nil
}

// giveDisk makes the disk of a box that has ended a layer. What stood on the box before
// goes, whether that works or not.
func (k *keeper) giveDisk(rec record.Box, to string) {
	rec.Taken = append(slices.Clone(rec.Taken), to)
	if err := k.settleTaken(rec); err != nil {
		k.log.Error("make a layer of the disk of a box that has ended", "box", rec.ID, "error", err)
	}
}

// checkSnapshot refuses boxes that no layer can be made of.
func checkSnapshot(rec record.Box) error {
	switch {
	case rec.Removing:
		return partlyRemoved(rec.ID)
	case rec.Options.RootfsPath != "":
		return fault.New(fault.Unsupported, "box %s stands on a directory of the host (rootfs_path) and not on an image: import that directory as an image, and take snapshots of boxes of it", rec.ID)
	case len(rec.Image.Layers) == 0:
		return fault.New(fault.InvalidState, "the image of box %s is unknown, since the box's record was damaged", rec.ID)
	}
	return nil
}

// takeDisk makes the disk of a box that is stopped its topmost layer below a new writable
// one. The record comes first: if the shim dies behind it, the next one goes on. The caller
// holds b.change.
func (k *keeper) takeDisk(b *box, to string) error {
	was := b.record()
	if err := k.needUpper(was); err != nil {
		return fault.Disk(err, "make a layer of the disk of box %s", was.ID)
	}
	rec := was
	rec.Taken = append(slices.Clone(was.Taken), to)
	if err := k.records.Put(rec.ID, rec, true); err != nil {
		return err
	}
	b.set(rec)
	err := k.settleTaken(rec)
	if err == nil {
		return nil
	}
	// What fails here leaves the record with the layer, and the next start tries again.
	if failed := bringBack(record.Dir(k.home, rec.ID)); failed != nil {
		return errors.Join(err, failed)
	}
	if failed := k.records.Put(rec.ID, was, true); failed != nil {
		return errors.Join(err, failed)
	}
	b.set(was)
	return err
}

// needUpper makes an empty writable layer for a box that has none, as after a snapshot
// behind which it was not started. It looks like the layer below it.
func (k *keeper) needUpper(rec record.Box) error {
	dir := record.Dir(k.home, rec.ID)
	upper := filepath.Join(dir, upperDir)
	if exists(upper) || exists(filepath.Join(dir, layer.DiskFile)) {
		return nil
	}
	layers := rec.Layers()
	top, err := k.openLayer(layers[len(layers)-1])
	if err != nil {
		return err
	}
	defer unix.Close(top)
	var st unix.Stat_t
	if err := unix.Fstat(top, &st); err != nil {
		return err
	}
	made := upper + ".new" // until it is complete
	if err := makeDirs(made); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(made, os.FileMode(st.Mode&0o777)), os.Chown(made, int(st.Uid), int(st.Gid))); err != nil {
		return err
	}
	return os.Rename(made, upper)
}

// settleTaken moves the disk of a box that does not run to the place that the box's record
// has for it, if that was not done. It may be called again after any failure, also after
// the power was cut.
func (k *keeper) settleTaken(rec record.Box) error {
	if len(rec.Taken) == 0 {
		return nil
	}
	to := rec.Taken[len(rec.Taken)-1]
	if exists(to) {
		return nil
	}
	dir := record.Dir(k.home, rec.ID)
	from := filepath.Join(dir, upperDir)
	if exists(filepath.Join(dir, layer.DiskFile)) || exists(filepath.Join(dir, taking, layer.DiskFile)) {
		from = filepath.Join(dir, taking)
		if err := gatherDisk(dir, from); err != nil {
			return fault.Disk(err, "make a layer of the disk of box %s", rec.ID)
		}
	} else if !exists(from) {
		return nil // the layer was lost after it was made; the next mount says so
	}
	if err := layer.MarkBox(from); err != nil {
		return err
	}
	return fault.Disk(unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE), "make a layer of the disk of box %s", rec.ID)
}

// gatherDisk puts the disk of a box with a size into a directory of its own, to.
func gatherDisk(dir, to string) error {
	if err := makeDirs(to); err != nil {
		return err
	}
	if err := layer.MarkDisk(to); err != nil {
		return err
	}
	err := os.Rename(filepath.Join(dir, layer.DiskFile), filepath.Join(to, layer.DiskFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it is there already
	}
	return err
}

// bringBack puts the disk of a box with a size that has not become a layer back into the
// box's directory.
func bringBack(dir string) error {
	err := os.Rename(filepath.Join(dir, taking, layer.DiskFile), filepath.Join(dir, layer.DiskFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // it is there then, or the box has none
		return fault.Disk(err, "bring the disk of a box back")
	}
	_ = os.RemoveAll(filepath.Join(dir, taking)) // what stays is swept by the next shim
	return nil
}

// copyDisk copies the disk of a box that is up, which stands still meanwhile, and tells for
// how long. The caller holds b.change.
func (k *keeper) copyDisk(b *box, to string) (time.Duration, error) {
	rec := b.record()
	ctx, cancel := context.WithTimeout(context.Background(), standStill)
	defer cancel()
	made := filepath.Join(record.Dir(k.home, rec.ID), taking)
	if err := os.RemoveAll(made); err != nil { // left by a shim that was killed
		return 0, fault.Disk(err, "remove an incomplete layer")
	}
	run, finish, err := k.prepareCopy(ctx, rec, made)
	if err != nil {
		return 0, err
	}
	still, err := k.standing(b, run)
	if err == nil {
		err = layer.MarkNew(made)
	}
	if err == nil {
		err = fault.Disk(unix.Renameat2(unix.AT_FDCWD, made, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE), "store a layer")
	}
	finish()
	if ctx.Err() != nil {
		err = fault.New(fault.Timeout, "the disk of box %s could not be copied within %v, for which a box may stand still: stop it first, which needs no copy", rec.ID, standStill)
	}
	return still, err
}

// prepareCopy prepares a copy of the disk of a box that is up to the new directory to. run
// copies, and finish must be called in any case; it removes what is still at to.
func (k *keeper) prepareCopy(ctx context.Context, rec record.Box, to string) (run func() error, finish func(), _ error) {
	dir := record.Dir(k.home, rec.ID)
	if exists(filepath.Join(dir, layer.DiskFile)) {
		if err := makeDirs(to); err != nil {
			return nil, nil, fault.Disk(err, "make a layer's directory")
		}
		return func() error { return k.copyDiskFile(rec.ID, to) }, func() { _ = os.RemoveAll(to) }, nil
	}
	upper, err := os.Open(filepath.Join(dir, upperDir))
	if err != nil {
		return nil, nil, fault.Disk(err, "open the disk of box %s", rec.ID)
	}
	defer upper.Close()
	c, err := layer.NewCopy(ctx, k.child("copy"), upper, to)
	if err != nil {
		return nil, nil, err
	}
	return c.Run, c.Close, nil
}

// child returns the command line of a child process that works on layers. The path is not
// one in /proc/self, because the child has other files under these numbers when it execs.
func (k *keeper) child(work string) []string {
	return []string{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), k.launcher.program.Fd()), work}
}

// standing calls do while the processes of a box that is up stand still, and tells for how
// long they did. A box that is paused stays paused. The caller holds b.change.
func (k *keeper) standing(b *box, do func() error) (time.Duration, error) {
	rec := b.record()
	if rec.Status == api.Paused {
		return 0, do()
	}
	if err := checkFreezable(); err != nil {
		return 0, err
	}
	if err := k.note(b, func(rec *record.Box) { rec.Pausing = true }); err != nil {
		return 0, err
	}
	start := time.Now()
	err := k.tellInit(rec.ID, wire.TypePause)
	if err == nil {
		err = groups(b.slot()).freeze()
	}
	if err == nil {
		err = do()
	}
	groups(b.slot()).thaw() // wake does so too; here it ends the time that is told
	still := time.Since(start)
	if woken := k.wake(b); woken != nil && !fault.Is(woken, fault.InvalidState) { // it may have been killed
		k.log.Error("let a box go on after a snapshot", "box", rec.ID, "error", woken)
	}
	return still, err
}
