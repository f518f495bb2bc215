package fake

import (
	"context"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

var errNoDisk = fault.New(fault.Unsupported, "a box of this engine has no disk of its own")

// Snapshot fails: these boxes have no disks.
func (e *Engine) Snapshot(context.Context, string, string) (core.Taken, error) {
	return core.Taken{}, errNoDisk
}

// Finish fails: these boxes have no disks.
func (e *Engine) Finish(context.Context, string, string) (core.Image, error) {
	return core.Image{}, errNoDisk
}

// Rollback fails: these boxes have no disks.
func (e *Engine) Rollback(context.Context, string, []string) (core.Record, error) {
	return core.Record{}, errNoDisk
}

// Diff fails: these boxes have no disks.
func (e *Engine) Diff(context.Context, string, core.DiffRequest) ([]api.Change, bool, error) {
	return nil, false, errNoDisk
}

// Snapshot makes the layer and no image.
func (i Images) Snapshot(_ context.Context, r core.SnapshotRequest, take func(layer string) (core.Image, error)) (api.Image, error) {
	_, err := take(r.Name)
	return api.Image{}, err
}

// Snapshots returns none.
func (i Images) Snapshots(context.Context) ([]api.SnapshotNode, error) { return nil, nil }

// Remove fails: the images have no records.
func (i Images) Remove(_ context.Context, ref string, _ bool) error {
	return fault.New(fault.ImageNotFound, "no image %q", ref)
}

// Stack fails: the images have no records.
func (i Images) Stack(ref string) (api.Image, []string, error) {
	return api.Image{}, nil, fault.New(fault.ImageNotFound, "no image %q", ref)
}
