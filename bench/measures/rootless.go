package measures

import (
	"context"
	"errors"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureRootless makes boxes as root and as an ordinary user.
func measureRootless(ctx context.Context, b *contestants.Field) (_ []harness.Row, err error) {
	user, err := b.Rootless(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, user.Close(context.WithoutCancel(ctx))) }()
	all := b.Interleave(ctx, user.Ours(), b.Ours.Contestant(b.Ours.CreateToOutput), user.Podman(ctx, b))
	return harness.Rows(harness.Millis, all, harness.Bar{Contestant: "ours, without root", Peer: "ours", Percentile: 50, Limit: 1.3}), nil
}
