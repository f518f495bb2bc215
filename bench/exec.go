package main

import "context"

// measureExec runs commands in one running box of each.
func measureExec(ctx context.Context, b *bench) ([]row, error) {
	r := b.startAll(ctx)
	all := b.interleave(ctx, r.contestants(hello...)...)
	return rows(millis, all,
		bar{contestant: "ours", peer: "crun", percentile: 50, limit: 0.35},
		bar{contestant: "ours", peer: "crun", percentile: 99, limit: 1},
	), r.close(ctx)
}
