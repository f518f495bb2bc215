package shim

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// dropped begins the names, in the directory of a box, of disks that rollbacks have given up.
// Each has a name of its own, since one may still be removed when the next is given up.
const dropped = "dropped"

// answerRollback gives a box other layers and an empty disk. The commands of a box that is
// up end, and it is started again.
func (k *keeper) answerRollback(conn *wire.Conn, f wire.Frame) (core.Record, error) {
	var r wire.Rollback
	if err := f.Decode(&r); err != nil {
		return core.Record{}, err
	}
	if err := k.queue.enter(conn); err != nil {
		return core.Record{}, err
	}
	defer k.queue.leave()
	b, err := k.lock(r.ID)
	if err != nil {
		return core.Record{}, err
	}
	defer b.change.Unlock()
	return k.rollback(b, r.Layers)
}

// rollback gives a box layers and an empty disk on top of them. The caller holds b.change.
func (k *keeper) rollback(b *box, layers []string) (core.Record, error) {
	rec := b.record()
	own, err := k.checkRollback(rec, layers)
	if err != nil {
		return core.Record{}, err
	}
	up := rec.Status.Up()
	b.mu.Lock()
	rec = b.rec
	rec.Returning = &own
	if err := k.records.Put(rec.ID, rec, true); err != nil {
		b.mu.Unlock()
		return core.Record{}, err
	}
	b.rec = rec
	b.mu.Unlock()
	if up {
		if _, err := k.stopBox(b, 0); err != nil && !fault.Is(err, fault.InvalidState) { // it has ended by itself
			return core.Record{}, err
		}
	}
	if err := k.settleRollback(b); err != nil || !up {
		return b.record().Record, err
	}
	if err := k.bringUp(b); err != nil {
		k.startFailed(b, err)
		return core.Record{}, err
	}
	return b.record().Record, nil
}

// checkRollback returns the layers of a rollback that lie on those of the box's image.
func (k *keeper) checkRollback(rec record.Box, layers []string) ([]string, error) {
	if rec.Removing {
		return nil, partlyRemoved(rec.ID)
	}
	n := len(rec.Image.Layers)
	if n == 0 || len(layers) < n || !slices.Equal(layers[:n], rec.Image.Layers) {
		return nil, fault.New(fault.InvalidArgument, "box %s does not stand on the image of that snapshot", rec.ID)
	}
	own := slices.Clone(layers[n:])
	for _, dir := range own {
		if filepath.Dir(dir) != k.layers() || !exists(dir) {
			return nil, fault.New(fault.Image, "a layer of the snapshot is missing")
		}
	}
	return own, nil
}

// settleRollback finishes a rollback that the record of a box which does not run tells of.
// It may be called again after any failure. The caller holds b.change, or the box is not
// known to others yet.
func (k *keeper) settleRollback(b *box) error {
	rec := b.record()
	if rec.Returning == nil {
		return nil
	}
	dir := record.Dir(k.home, rec.ID)
	was, err := dropDisk(dir)
	if err != nil {
		return fault.Disk(err, "give up the disk of box %s", rec.ID)
	}
	rec.Taken, rec.Returning = *rec.Returning, nil
	if err := k.records.Put(rec.ID, rec, true); err != nil {
		return err
	}
	b.set(rec)
	k.idle.enter()
	go func() { // a large disk takes long
		defer k.idle.leave()
		if err := os.RemoveAll(was); err != nil {
			k.log.Error("remove a disk that a rollback has given up", "box", rec.ID, "error", err)
		}
	}()
	return nil
}

// dropDisk moves the disk of a box in dir to a directory, which it returns. What of the disk
// is there no more was moved by an earlier try.
func dropDisk(dir string) (was string, err error) {
	if was, err = os.MkdirTemp(dir, dropped); err != nil {
		return "", err
	}
	for _, name := range []string{upperDir, "work", layer.DiskFile} {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(was, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return was, nil
}

// removeDropped removes what rollbacks of an earlier shim have given up in the directory of
// a box.
func removeDropped(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), dropped) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
