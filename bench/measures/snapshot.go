package measures

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureSnapshot takes snapshots of a box that has stopped, and of one that runs, which
// stands still meanwhile.
func measureSnapshot(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	onExt4, err := snapshots(ctx, b, harness.NewDisk, "ext4", harness.Bar{Contestant: "ours, stands still, ext4", Peer: "cp -a, ext4", Percentile: 50, Limit: 1.2})
	if err != nil {
		return nil, err
	}
	onXFS, err := snapshots(ctx, b, harness.NewSharingDisk, "xfs")
	if err != nil { // mkfs.xfs is not installed
		return append(onExt4, harness.Row{Contestant: "ours, stands still, xfs", Unit: "ms", DidNotRun: err.Error()}), nil
	}
	for i, row := range onXFS {
		if row.Contestant == "ours, stands still, xfs" && row.DidNotRun == "" {
			onXFS[i].Bars = append(row.Bars, harness.Most(40, "ms", row.P50))
		}
	}
	return append(onExt4, onXFS...), nil
}

// snapshots takes them on a disk of its own.
func snapshots(ctx context.Context, b *contestants.Field, make func(dir string) (harness.Disk, error), fs string, bars ...harness.Bar) (_ []harness.Row, err error) {
	disk, err := make(b.Dir)
	defer func() { err = errors.Join(err, disk.Close()) }()
	if err != nil {
		return nil, err
	}
	o, err := b.WithImage(ctx, disk.Dir+"/home")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close(context.WithoutCancel(ctx))) }()
	box, err := o.Changed(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Remove(ctx, box)) }()
	all := b.Interleave(ctx,
		o.As("stopped, "+fs, o.SnapshotStopped),
		o.As("stands still, "+fs, func(ctx context.Context) (time.Duration, error) { return o.SnapshotRunning(ctx, box) }),
		harness.Contestant{Name: "cp -a, " + fs, Run: func(ctx context.Context) (time.Duration, error) { return o.CopyDisk(ctx, box) }},
	)
	rows := harness.Rows(harness.Millis, all, bars...)
	if rows[0].DidNotRun == "" {
		rows[0].Bars = append(rows[0].Bars, harness.Most(10, "ms", rows[0].P50))
	}
	return rows, nil
}

// cloneBar holds boxes of a snapshot to those of the image below it.
var cloneBar = harness.Bar{Contestant: "ours, of a snapshot", Peer: "ours, of an image", Percentile: 50, Limit: 1.1}

// measureClone makes boxes of a snapshot and of the image below it.
func measureClone(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	pace := b.Pace
	pace.Pause = max(pace.Pause, contestants.Refill)
	all, err := besideImage(ctx, b, "clone", pace, (*contestants.Ours).CreateToOutput)
	return harness.Rows(harness.Millis, all, cloneBar), err
}

// measureCloneBatch makes many at once.
func measureCloneBatch(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	all, err := besideImage(ctx, b, "clones", harness.Pace{Rounds: batchRounds}, func(o *contestants.Ours, ctx context.Context) (time.Duration, error) {
		return o.Batch(ctx, batchSize)
	})
	return harness.Rows(harness.Seconds, all, cloneBar), err
}

// besideImage measures a work with boxes of a snapshot, and with those of the image below
// it, in a home of this name.
func besideImage(ctx context.Context, b *contestants.Field, home string, pace harness.Pace, work func(*contestants.Ours, context.Context) (time.Duration, error)) (_ []harness.Series, err error) {
	o, err := b.WithImage(ctx, filepath.Join(b.Dir, home))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Close(context.WithoutCancel(ctx))) }()
	of, err := o.Snapshotted(ctx)
	if err != nil {
		return nil, err
	}
	return pace.Interleave(ctx,
		of.As("of a snapshot", func(ctx context.Context) (time.Duration, error) { return work(of, ctx) }),
		o.As("of an image", func(ctx context.Context) (time.Duration, error) { return work(o, ctx) }),
	), nil
}
