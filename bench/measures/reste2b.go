package measures

import (
	"context"
	"errors"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
)

// measureE2B makes boxes and runs a command in each, by E2B's own SDK and by our own
// routes.
func measureE2B(ctx context.Context, b *contestants.Field) (_ []harness.Row, err error) {
	s, err := b.Service(ctx)
	if err != nil {
		return nil, err
	}
	e, err := s.StartE2B(ctx, b)
	defer func() { err = errors.Join(err, e.Close()) }()
	if err != nil {
		return nil, err
	}
	sdk := s.As("", e.Run)
	sdk.Name, sdk.Why = "E2B's Python SDK", e.Why // which may be missing, as a peer may
	all := b.Interleave(ctx, sdk, s.As("POST, exec and events", e.Rest))
	return harness.Rows(harness.Millis, all, harness.Bar{Contestant: "E2B's Python SDK", Peer: "ours, POST, exec and events", Percentile: 50, Limit: 2}), nil
}
