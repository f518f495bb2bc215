package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// merging is the beginning of the names, in the shim's directory of the home, of layers
// that others are being merged into.
const merging = "merging-"

// squashLater merges the layers of a box in the background if it stands on so many that it
// will soon stand on the most, and those of a snapshot of it. The box stands on the merged
// ones once it does not run; so do boxes that are made of the snapshot from then on.
func (k *keeper) squashLater(id string, snapshot []string) {
	if len(snapshot) < layer.SquashFrom {
		return
	}
	k.idle.enter()
	go func() {
		defer k.idle.leave()
		err := k.merge(snapshot, 0)
		if err == nil {
			err = k.squash(id)
		}
		if err != nil && !fault.Is(err, fault.BoxNotFound) {
			k.log.Error("merge the layers of a box", "box", id, "error", err)
		}
	}()
}

// squash merges the layers that were made of a box's disk, and has the box stand on the
// merged one if it does not run. A box that runs keeps its layers until it is started again.
func (k *keeper) squash(id string) error {
	b, err := k.lock(id)
	if err != nil {
		return err
	}
	rec := b.record()
	b.change.Unlock() // a merge takes long
	if err := k.merge(rec.Layers(), len(rec.Image.Layers)); err != nil {
		return err
	}
	if b, err = k.lock(id); err != nil {
		return err
	}
	defer b.change.Unlock()
	return k.useSquashed(b)
}

// useSquashed has a box that does not run stand on a merged layer in place of those that
// were merged into it, if there is one. The record names it before it is looked at, so that
// nobody collects it in between. The caller holds b.change.
func (k *keeper) useSquashed(b *box) error {
	rec := b.record()
	n := len(rec.Image.Layers)
	layers := layer.Squashed(rec.Layers(), n)
	if rec.Status.Up() || rec.Returning != nil || len(layers) == len(rec.Layers()) {
		return nil
	}
	was := rec
	rec.Merged = layers[n]
	if err := k.put(b, rec); err != nil {
		return err
	}
	rec.Merged = ""
	if layer.OnDisk(layers[n]) {
		rec.Taken = slices.Clone(layers[n:])
	} else {
		rec.Taken = was.Taken
	}
	return k.put(b, rec)
}

// put writes the record of a box. The caller holds b.change.
func (k *keeper) put(b *box, rec record.Box) error {
	if err := k.records.Put(rec.ID, rec, true); err != nil {
		return err
	}
	b.set(rec)
	return nil
}

// below returns the layers that a snapshot of a box lies on, as few as there can be. Where
// there are too many it waits until they are merged. Those of the box's image are among them,
// so that the box can be rolled back to the snapshot, unless they are too many by themselves.
// The caller holds b.change.
func (k *keeper) below(b *box) ([]string, error) {
	rec := b.record()
	own := len(rec.Image.Layers)
	if err := k.mergeMost(rec.Layers(), own); err != nil {
		return nil, err
	}
	if err := k.useSquashed(b); err != nil {
		return nil, err
	}
	layers := layer.Squashed(b.record().Layers(), own)
	if len(layers) >= maxLayers && rec.Status.Up() { // a box that does not run would have to stand on them itself
		if err := k.mergeMost(layers, 0); err != nil {
			return nil, err
		}
		layers = layer.Squashed(layers, 0)
	}
	if len(layers) >= maxLayers {
		return nil, fault.New(fault.ResourceExhausted, "box %s stands on %d layers, which is the most: build an image of one layer, FROM scratch and COPY --from=%s / /, and make the box of that", rec.ID, maxLayers, rec.Image.Ref)
	}
	return layers, nil
}

// mergeMost merges layers, but for so many of the lowest, if they are the most.
func (k *keeper) mergeMost(layers []string, least int) error {
	if len(layers) < maxLayers {
		return nil
	}
	return k.merge(layers, least)
}

// merge merges the layers that were made of disks of boxes, but for the lowest ones, into
// one, unless that was done already. One merge at a time is enough for the disk, and the
// next one may find that it is not needed any more.
func (k *keeper) merge(layers []string, least int) error {
	if len(layers) < layer.SquashFrom {
		return nil
	}
	k.merges.Lock()
	defer k.merges.Unlock()
	layers = layer.Squashed(layers, least)
	from := max(layer.Own(layers), least)
	if len(layers) < layer.SquashFrom || len(layers)-from < 2 {
		return nil
	}
	return k.mergeInto(layers, from, layer.Merged(layers[from:]))
}

// mergeInto merges layers, lowest first, into the layer to, but for so many of the lowest. It
// is used once it is on the disk: what was merged may be removed then.
func (k *keeper) mergeInto(layers []string, lowest int, to string) error {
	made := filepath.Join(k.home, "engine", merging+filepath.Base(to))
	if err := os.RemoveAll(made); err != nil {
		return fault.Disk(err, "remove an incomplete layer")
	}
	defer func() { _ = os.RemoveAll(made) }()
	opened := make([]*os.File, 0, len(layers))
	defer func() { closeAll(opened) }()
	for _, dir := range slices.Backward(layers) {
		fd, err := k.openLayer(dir)
		if err != nil {
			return err
		}
		opened = append(opened, os.NewFile(uintptr(fd), dir))
	}
	if err := layer.Merge(context.Background(), k.child("merge"), opened[:len(layers)-lowest], opened[len(layers)-lowest:], made); err != nil {
		return err
	}
	if err := layer.MarkNew(made); err != nil {
		return err
	}
	err := unix.Renameat2(unix.AT_FDCWD, made, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fault.Disk(err, "store a layer")
	}
	return layer.Flush(k.layers())
}

// sweepMerges removes the layers that an earlier shim has begun to make.
func (k *keeper) sweepMerges() error {
	left, err := filepath.Glob(filepath.Join(k.home, "engine", merging+"*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return fault.Disk(err, "remove incomplete layers")
}
