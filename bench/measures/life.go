package measures

import (
	"context"
	"errors"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureLife makes, uses and removes boxes, with a pool and without one, with time
// between them in which the pool fills up again.
func measureLife(ctx context.Context, b *contestants.Field) (_ []harness.Row, err error) {
	warm, err := b.Warm(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, warm.Close(context.WithoutCancel(ctx))) }()
	pace := b.Pace
	pace.Pause = max(pace.Pause, contestants.Refill)
	all := pace.Interleave(ctx, warm.As("from a pool", warm.Life), b.Ours.As("no pool", b.Ours.Life), b.Peers.Crun.Lives(ctx), b.Peers.Runc.Lives(ctx))
	return harness.Rows(harness.Millis, all,
		harness.Bar{Contestant: "ours, from a pool", Peer: "crun", Percentile: 50, Limit: 0.9},
		harness.Bar{Contestant: "ours, no pool", Peer: "runc", Percentile: 50, Limit: 0.85},
	), nil
}
