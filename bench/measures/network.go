package measures

import (
	"context"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureNetwork makes boxes with an image, a volume and a network, and with
// all that these require, one at a time.
func measureNetwork(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	l, err := b.Lab(ctx)
	if err != nil {
		return nil, err
	}
	all := b.Interleave(ctx, l.Ours.Contestant(l.OursToOutput), l.Podman.Contestant("podman", l.PodmanToOutput))
	return harness.Rows(harness.Millis, all, harness.Bar{Contestant: "ours", Peer: "podman", Percentile: 50, Limit: 0.3}), nil
}
