package measures

import (
	"context"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

const (
	batchSize   = 100
	batchRounds = 5
)

// measureBatch makes many boxes, several at once. The peers' times include the
// removals, because their `run` is one command.
func measureBatch(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	peer := func(o *contestants.OCI) harness.Contestant {
		one := o.Creates(ctx)
		return o.Contestant(func(ctx context.Context) (time.Duration, error) {
			return harness.AtOnce(batchSize, harness.BoxesAtOnce, func(int) error {
				_, err := one.Run(ctx)
				return err
			})
		})
	}
	all := harness.Pace{Rounds: batchRounds}.Interleave(ctx, b.Ours.Contestant(func(ctx context.Context) (time.Duration, error) { return b.Ours.Batch(ctx, batchSize) }), peer(b.Peers.Runc), peer(b.Peers.Crun))
	return harness.Rows(harness.Seconds, all, harness.Bar{Contestant: "ours", Peer: "crun", Percentile: 50, Limit: 1.4}), nil
}
