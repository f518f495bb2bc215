package measures

import (
	"context"
	"errors"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureCreate makes boxes, one at a time.
func measureCreate(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	all := b.Interleave(ctx,
		b.Ours.Contestant(b.Ours.CreateToOutput),
		b.Peers.Runc.Creates(ctx),
		b.Peers.Crun.Creates(ctx),
		b.Peers.Bwrap.Creates(),
	)
	return harness.Rows(harness.Millis, all,
		harness.Bar{Contestant: "ours", Peer: "crun", Percentile: 50, Limit: 1.7},
		harness.Bar{Contestant: "ours", Peer: "crun", Percentile: 99, Limit: 1.5},
		harness.Bar{Contestant: "ours", Peer: "runc", Percentile: 50, Limit: 0.65},
	), nil
}

// measureWarm makes boxes one at a time, with time between them in which ours makes
// the next one ready.
func measureWarm(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	all, err := warmed(ctx, b, (*contestants.Ours).CreateToOutput, b.Peers.Bwrap.Creates())
	return harness.Rows(harness.Millis, all,
		harness.Bar{Contestant: "ours", Peer: "bwrap", Percentile: 50, Limit: 0.85},
		harness.Bar{Contestant: "ours", Peer: "bwrap", Percentile: 99, Limit: 1},
	), err
}

// measureUnseen does the same with an image that no box had before: ours has a pool
// of boxes of other images.
func measureUnseen(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	all, err := warmed(ctx, b, (*contestants.Ours).UnseenToOutput, b.Peers.Crun.Creates(ctx), b.Peers.Bwrap.Creates())
	return harness.Rows(harness.Millis, all, harness.Bar{Contestant: "ours", Peer: "crun", Percentile: 50, Limit: 1}), err
}

// warmed returns the times that a library with a pool and its peers take for one
// create, with a pause between them in which the pool fills up again.
func warmed(ctx context.Context, b *contestants.Field, create func(*contestants.Ours, context.Context) (time.Duration, error), peers ...harness.Contestant) (_ []harness.Series, err error) {
	warm, err := b.Warm(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, warm.Close(context.WithoutCancel(ctx))) }()
	pace := b.Pace
	pace.Pause = max(pace.Pause, contestants.Refill)
	ours := warm.Contestant(func(ctx context.Context) (time.Duration, error) { return create(warm, ctx) })
	return pace.Interleave(ctx, append([]harness.Contestant{ours}, peers...)...), nil
}

// measureSteps measures the steps of which our time consists.
func measureSteps(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	steps := []string{"create", "first exec to its first byte", "first exec to its exit status", "stop and remove"}
	all := make([]harness.Series, len(steps))
	for i, name := range steps {
		all[i].Name = name
	}
	for round := -harness.Warmup; round < b.Rounds && ctx.Err() == nil; round++ {
		time.Sleep(b.Pause)
		took, err := b.Ours.Steps(ctx)
		if err != nil {
			return harness.Rows(harness.Millis, []harness.Series{{Contestant: harness.Contestant{Name: "ours", Why: err.Error()}}}), nil
		}
		for i := range took {
			if round >= 0 {
				all[i].Samples = append(all[i].Samples, took[i])
			}
		}
	}
	return harness.Rows(harness.Millis, all), nil
}
