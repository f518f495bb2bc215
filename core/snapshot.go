package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Taken is what an engine says of a snapshot that it has taken.
type Taken struct {
	Image  Image         // the image of the box, with the new layer as its topmost one
	Paused time.Duration // for how long the box stood still
}

// SnapshotRequest is what the image store is asked to make an image of.
type SnapshotRequest struct {
	Name string // the name of the new image; "" for one that is made of the key of its layer
	Box  string // the id of the box
}

// Snapshot makes an image of the disk of the box as it is now: the image of the box with
// one more layer. The disk of a box that does not run becomes that layer, whatever its
// size, and the box goes on with an empty layer on top of it. One that runs stands still
// while its disk is copied. name is the name of the image, which must be free, or "".
// Errors: BoxNotFound, InvalidArgument (the name), AlreadyExists, Unsupported (a box of
// rootfs_path), ResourceExhausted (too many layers), Timeout (the copy takes too long),
// Storage, Engine, and those of ctx.
func (b *Box) Snapshot(ctx context.Context, name string) (api.Snapshot, error) {
	var still time.Duration
	img, err := b.r.images.Snapshot(ctx, SnapshotRequest{Name: name, Box: b.id}, func(layer string) (Image, error) {
		taken, err := b.r.engine.Snapshot(ctx, b.id, layer)
		still = taken.Paused
		return taken.Image, err
	})
	return api.Snapshot{Image: img, PausedMS: float64(still.Microseconds()) / 1000}, err
}

// Finish ends the box and removes it, and makes the layer with a key, 64 hexadecimal
// digits, of its disk: that is not copied, whatever its size. It returns the image of the
// box, with this layer as its topmost one. Nobody stands on the layer until an image or a
// box does. Errors: BoxNotFound, Unsupported (a box of rootfs_path), ResourceExhausted
// (too many layers), Storage, Engine, and those of ctx.
func (b *Box) Finish(ctx context.Context, layer string) (Image, error) {
	img, err := b.r.engine.Finish(ctx, b.id, layer)
	if err == nil {
		b.r.forget(b.id)
	}
	return img, err
}

// Rollback gives the box the disk that it had when a snapshot was taken. The commands of a
// box that is up end, and it is started again; what was on its disk since is gone. Errors:
// BoxNotFound, ImageNotFound, InvalidArgument (no snapshot of this box), Image, Storage,
// Engine, and those of a start.
func (b *Box) Rollback(ctx context.Context, snapshot string) (Record, error) {
	if err := b.r.refuseAfterShutdown(); err != nil {
		return Record{}, err
	}
	_, layers, err := b.ownSnapshot(snapshot)
	if err != nil {
		return Record{}, err
	}
	return b.r.engine.Rollback(ctx, b.id, layers)
}

// Diff returns what has changed on the disk of the box since it was made, or since a
// snapshot of it was taken. The caller has checked o with its Check method. Errors:
// BoxNotFound, ImageNotFound, InvalidArgument (no snapshot of this box), Storage, Engine.
func (b *Box) Diff(ctx context.Context, o options.Diff) (api.Changes, error) {
	d := DiffRequest{Limit: cmp.Or(o.PageSize, options.MaxFilePage)}
	var err error
	if d.After, err = o.After(); err != nil {
		return api.Changes{}, err
	}
	if o.From != "" {
		if _, d.Base, err = b.ownSnapshot(o.From); err != nil {
			return api.Changes{}, err
		}
	}
	changes, more, err := b.r.engine.Diff(ctx, b.id, d)
	page := api.Changes{Changes: changes}
	if err == nil && more {
		token := options.FilePageToken(changes[len(changes)-1].Path[1:])
		page.NextPageToken = &token
	}
	return page, err
}

// clonesAtOnce is how many clones are made at the same time.
const clonesAtOnce = 8

// Clone makes boxes that are like this one, with the files of a snapshot of it, which is
// taken now if none is named. The ports of each are chosen anew. If one can't be made, the
// others are removed again, and so is the snapshot that was taken. The caller has checked
// c with its Check method. Errors: InvalidArgument (the options, no snapshot of this box),
// and those of [Box.Snapshot] and [Runtime.Create].
func (b *Box) Clone(ctx context.Context, c options.Clone, host ...options.HostCheck) ([]Record, error) {
	rec, err := b.Record(ctx)
	if err != nil {
		return nil, err
	}
	o, err := c.Apply(rec.Options, host...)
	if err != nil {
		return nil, err
	}
	if o.Image, err = b.snapshotFor(ctx, c.Snapshot); err != nil {
		return nil, err
	}
	made := make([]Record, max(c.N, 1))
	all, ctx2 := errgroup.WithContext(ctx)
	all.SetLimit(clonesAtOnce)
	for i := range made {
		all.Go(func() (err error) {
			own := o
			own.Name = c.Name(i + 1)
			_, made[i], err = b.r.Create(ctx2, own)
			return err
		})
	}
	if err = all.Wait(); err == nil {
		return made, nil
	}
	return nil, b.unclone(context.WithoutCancel(ctx), made, c.Snapshot == "", o.Image, err)
}

// unclone removes the clones that were made before one failed, and the snapshot if it was
// taken for them. One that others have begun to stand on stays.
func (b *Box) unclone(ctx context.Context, made []Record, taken bool, snapshot string, err error) error {
	for _, rec := range made {
		if rec.ID != "" {
			err = errors.Join(err, b.r.At(rec.ID).Remove(ctx, true))
		}
	}
	if taken {
		if left := b.r.images.Remove(ctx, snapshot, false); left != nil && !fault.Is(left, fault.InvalidState) {
			err = errors.Join(err, left)
		}
	}
	return err
}

// snapshotFor returns the name of a snapshot of the box, which is taken now for "".
func (b *Box) snapshotFor(ctx context.Context, ref string) (string, error) {
	if ref == "" {
		taken, err := b.Snapshot(ctx, "")
		return taken.Name, err
	}
	img, _, err := b.ownSnapshot(ref)
	return img.Name, err
}

// ownSnapshot returns a snapshot of the box and the directories of its layers.
func (b *Box) ownSnapshot(ref string) (api.Image, []string, error) {
	img, layers, err := b.r.images.Stack(ref)
	if err == nil && img.Box != b.id {
		err = fault.New(fault.InvalidArgument, "%s is no snapshot of box %s", img.Name, b.id)
	}
	return img, layers, err
}

// DiffRequest asks for a page of what has changed on the disk of a box.
type DiffRequest struct {
	Base  []string // the layers to compare with, lowest first; nil for those of the box's image
	After string   // the path behind which the page begins; "" for the first page
	Limit int      // how many changes the page has at the most
}

// Snapshots returns the snapshots of a box, or of all boxes for "", oldest first, each
// behind the one that it stands on. Errors: Storage.
func (r *Runtime) Snapshots(ctx context.Context, box string) ([]api.SnapshotNode, error) {
	all, err := r.images.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(n api.SnapshotNode) bool { return box != "" && n.Box != box })
	slices.SortStableFunc(all, func(a, b api.SnapshotNode) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(len(a.Layers), len(b.Layers)))
	})
	return all, nil
}
