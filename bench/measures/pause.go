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

// turnMillis is what a pause may take, and a resume.
const turnMillis = 5

// paused are the boxes that are paused: what their commands do, and how many do it.
// Commands that want more than their box may have wait for the kernel to let them go on,
// in the middle of a call too: no bar holds them.
var paused = []struct {
	name, script string
	commands     int
	held         bool // to the bar
}{
	{"at rest", "exec sleep 1000000", 1, true},
	{"busy", "while :; do :; done", 1, true},
	{"8 busy", "while :; do :; done", 8, false}, // more than the CPU time that the box may have
}

// measurePause pauses boxes and resumes them.
func measurePause(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	if b.Ours.Why != "" {
		return b.Ours.Alone("ms", 0, nil), nil
	}
	var rows []harness.Row
	for _, p := range paused {
		box, err := b.Ours.Create(ctx)
		if err != nil {
			return nil, err
		}
		all, err := turned(ctx, b, p.name, box, p.commands, p.script)
		if err = errors.Join(err, b.Ours.Remove(ctx, box)); err != nil {
			return nil, err
		}
		for _, row := range harness.Rows(harness.Millis, all) {
			if p.held && row.DidNotRun == "" {
				row.Bars = append(row.Bars, harness.Most(turnMillis, "ms", row.P50))
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// turned pauses and resumes a box in which commands run.
func turned(ctx context.Context, b *contestants.Field, name string, box *core.Box, commands int, script string) ([]harness.Series, error) {
	for range commands {
		e, err := box.Exec(ctx, options.Exec{Cmd: []string{"sh", "-c", script}})
		if err != nil {
			return nil, err
		}
		defer e.Close()
	}
	return b.Interleave(ctx,
		turning(b, "pause, "+name, box, func(pause, _ time.Duration) time.Duration { return pause }),
		turning(b, "resume, "+name, box, func(_, resume time.Duration) time.Duration { return resume }),
	), nil
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
