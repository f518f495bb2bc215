package measures

import (
	"context"
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
		b.Peers.Bwrap.Contestant(func(ctx context.Context) (time.Duration, error) {
			t, err := b.Peers.Bwrap.Run(ctx, contestants.Hello...)
			return t.First, err
		}),
	)
	return harness.Rows(harness.Millis, all,
		harness.Bar{Contestant: "ours", Peer: "runc", Percentile: 50, Limit: 0.9},
		harness.Bar{Contestant: "ours", Peer: "runc", Percentile: 99, Limit: 1.5},
	), nil
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
