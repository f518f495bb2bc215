package measures

import (
	"context"
	"errors"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core"
	"sandbox/core/options"
)

// spinners is how many commands of the paused box never rest.
const spinners = 8

// measurePause pauses a box with busy commands and resumes it.
func measurePause(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	if b.Ours.Why != "" {
		return b.Ours.Alone("ms", 0, nil), nil
	}
	box, err := b.Ours.Create(ctx)
	if err != nil {
		return nil, err
	}
	for range spinners {
		e, err := box.Exec(ctx, options.Exec{Cmd: []string{"sh", "-c", "while :; do :; done"}})
		if err != nil {
			return nil, errors.Join(err, b.Ours.Remove(ctx, box))
		}
		defer e.Close()
	}
	all := b.Interleave(ctx,
		turning(b, "ours, pause", box, func(pause, _ time.Duration) time.Duration { return pause }),
		turning(b, "ours, resume", box, func(_, resume time.Duration) time.Duration { return resume }),
	)
	return harness.Rows(harness.Millis, all), b.Ours.Remove(ctx, box)
}

// turning is a contestant that pauses and resumes a box, and tells one of the two times.
func turning(b *contestants.Field, name string, box *core.Box, which func(pause, resume time.Duration) time.Duration) harness.Contestant {
	c := b.Ours.Contestant(func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		_, err := box.Pause(ctx, false)
		paused := time.Now()
		if err == nil {
			_, err = box.Resume(ctx)
		}
		return which(paused.Sub(start), time.Since(paused)), err
	})
	c.Name = name
	return c
}
