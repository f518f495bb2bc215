package contestants

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sandbox/core"
)

// write100MB makes 1,000 files of 100 KB in a box.
const write100MB = "mkdir /changed; cd /changed; head -c 100000 /dev/urandom >one; i=0; while [ $i -lt 1000 ]; do cat one >file-$i; i=$((i+1)); done; rm one"

// Changed makes a box that has written 100 MB in 1,000 files.
func (o *Ours) Changed(ctx context.Context) (*core.Box, error) {
	box, err := o.Create(ctx)
	if err != nil {
		return nil, err
	}
	_, err = box.Run(ctx, "sh", "-c", write100MB)
	return box, err
}

// SnapshotStopped takes a snapshot of such a box after it has stopped, and tells how long
// the snapshot took.
func (o *Ours) SnapshotStopped(ctx context.Context) (took time.Duration, err error) {
	box, err := o.Changed(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.Remove(ctx, box)) }()
	if _, err := box.Stop(ctx, 0); err != nil {
		return 0, err
	}
	start := time.Now()
	taken, err := box.Snapshot(ctx, "")
	took = time.Since(start)
	return took, errors.Join(err, o.host.Images.Remove(ctx, taken.Name, true))
}

// SnapshotRunning takes a snapshot of a box that runs, and tells for how long the box stood
// still.
func (o *Ours) SnapshotRunning(ctx context.Context, box *core.Box) (time.Duration, error) {
	taken, err := box.Snapshot(ctx, "")
	if err != nil {
		return 0, err
	}
	return time.Duration(taken.PausedMS * float64(time.Millisecond)), o.host.Images.Remove(ctx, taken.Name, true)
}

// CopyDisk copies what a box has written with cp -a, beside where a snapshot would be.
func (o *Ours) CopyDisk(ctx context.Context, box *core.Box) (time.Duration, error) {
	to := filepath.Join(o.Home, "copied")
	start := time.Now()
	err := exec.CommandContext(ctx, "cp", "-a", filepath.Join(o.Home, "boxes", box.ID(), "upper"), to).Run()
	took := time.Since(start)
	return took, errors.Join(err, os.RemoveAll(to))
}

// WithImage returns the library with a home at this path, which is made, and without a
// pool. Its boxes are made of an image of the root file system that everyone has, and keep
// their disks. The caller closes it.
func (b *Field) WithImage(ctx context.Context, home string) (*Ours, error) {
	o := openOurs(b, home, 0)
	if o.Why != "" {
		return nil, errors.New(o.Why)
	}
	o.rootfs, o.image, o.keeps = "", warmImage, true
	_, err := o.host.Images.Import(ctx, warmImage, b.Rootfs, nil)
	return o, err
}

// Snapshotted returns the library once more, with boxes of a snapshot. The home is that of
// o, and is closed with it.
func (o *Ours) Snapshotted(ctx context.Context) (*Ours, error) {
	box, err := o.Changed(ctx)
	if err != nil {
		return nil, err
	}
	taken, err := box.Snapshot(ctx, "localhost/changed:1")
	if err = errors.Join(err, o.Remove(ctx, box)); err != nil {
		return nil, err
	}
	second := *o
	second.image = taken.Name
	return &second, nil
}
