package measures

import (
	"context"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureExec runs commands in one running box or container of each contestant.
func measureExec(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	r := b.StartAll(ctx)
	all := b.Interleave(ctx, r.Contestants(contestants.Hello...)...)
	return harness.Rows(harness.Millis, all,
		harness.Bar{Contestant: "ours", Peer: "crun", Percentile: 50, Limit: 0.22},
		harness.Bar{Contestant: "ours", Peer: "crun", Percentile: 99, Limit: 1},
	), r.Close(ctx)
}
