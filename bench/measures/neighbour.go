package measures

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core"
	"sandbox/core/options"
)

// hostile are the commands of a box that takes as much as it can get, each of
// them without end: processes, memory and the disk's time.
var hostile = []string{
	"while :; do (bomb() { bomb | bomb & }; bomb) 2>/dev/null; done",
	"while :; do dd if=/dev/zero of=/dev/null bs=1000M count=1 2>/dev/null; done",
	"while :; do dd if=/dev/zero of=/tmp/f bs=1M count=200 2>/dev/null; done",
}

const (
	neighbourExecs = 200
	settling       = 2 * time.Second // until the load has reached its maximum
)

// measureNeighbour runs commands in one default box, first alone and then while
// another box runs all hostile commands.
func measureNeighbour(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	if b.Ours.Why != "" {
		return b.Ours.Alone("ms", 0, nil), nil
	}
	quiet, err := b.Ours.CreateDefault(ctx)
	if err != nil {
		return nil, err
	}
	noisy, err := b.Ours.CreateDefault(ctx)
	if err != nil {
		return nil, errors.Join(err, b.Ours.Remove(ctx, quiet))
	}
	rows, err := beside(ctx, b, quiet, noisy)
	return rows, errors.Join(err, b.Ours.Remove(ctx, noisy), b.Ours.Remove(ctx, quiet))
}

func beside(ctx context.Context, b *contestants.Field, quiet, noisy *core.Box) ([]harness.Row, error) {
	alone, err := hellos(ctx, b, "ours, alone", quiet)
	if err != nil {
		return nil, err
	}
	for _, script := range hostile {
		e, err := noisy.Exec(ctx, options.Exec{Cmd: []string{"sh", "-c", script}})
		if err != nil {
			return nil, fmt.Errorf("start a load: %w", err)
		}
		defer e.Close()
	}
	time.Sleep(settling)
	loaded, err := hellos(ctx, b, "ours", quiet)
	if err != nil {
		return nil, err
	}
	return harness.Rows(harness.Millis, []harness.Series{loaded, alone},
		harness.Bar{Contestant: "ours", Peer: "ours, alone", Percentile: 50, Limit: 5}), nil
}

// hellos times execs that run one after the other.
func hellos(ctx context.Context, b *contestants.Field, name string, box *core.Box) (harness.Series, error) {
	c := b.Ours.Contestant(nil)
	c.Name = name
	s := harness.Series{Contestant: c}
	for range neighbourExecs {
		took, err := b.Ours.Exec(ctx, box, contestants.Hello...)
		if err != nil {
			return s, err
		}
		s.Samples = append(s.Samples, took.End)
	}
	return s, nil
}
