package backend

import (
	"context"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// SnapshotBox makes an image of the disk of a box.
func (h hostBoxes) SnapshotBox(ctx context.Context, ref, name string) (api.Snapshot, error) {
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.Snapshot{}, err
	}
	return b.Snapshot(ctx, name)
}

// RollbackBox gives a box the disk of a snapshot of it.
func (h hostBoxes) RollbackBox(ctx context.Context, ref, snapshot string) (api.Box, error) {
	return h.with(ctx, ref, func(b *core.Box, ctx context.Context) (core.Record, error) { return b.Rollback(ctx, snapshot) })
}

// CloneBox makes boxes that are like a box.
func (h hostBoxes) CloneBox(ctx context.Context, ref string, o options.Clone) ([]api.Box, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b, err := h.box(ctx, ref)
	if err != nil {
		return nil, err
	}
	made, err := b.Clone(ctx, o, h.host.CheckLimits)
	var boxes []api.Box
	for _, rec := range made {
		boxes = append(boxes, rec.Info())
	}
	return boxes, err
}

// DiffBox returns a page of what has changed on the disk of a box.
func (h hostBoxes) DiffBox(ctx context.Context, ref string, o options.Diff) (api.Changes, error) {
	if err := o.Check(); err != nil {
		return api.Changes{}, err
	}
	b, err := h.box(ctx, ref)
	if err != nil {
		return api.Changes{}, err
	}
	return b.Diff(ctx, o)
}

// Snapshots returns the snapshots of a box, or of all for "".
func (h hostBoxes) Snapshots(ctx context.Context, box string) ([]api.SnapshotNode, error) {
	if box != "" {
		rec, err := h.host.Find(ctx, box)
		if err == nil {
			box = rec.ID
		} else if !fault.Is(err, fault.BoxNotFound) { // one that is gone is named by its id
			return nil, err
		}
	}
	return h.host.Snapshots(ctx, box)
}
