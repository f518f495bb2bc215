package measures

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core"
)

const (
	crowdBoxes    = 1000
	crowdRounds   = 30 // at most
	crowdRemovers = 4  // removals at once
)

// measureThousand keeps many boxes idle, works among them, and removes them all. It
// takes some minutes, most of which go into making them.
func measureThousand(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	if b.Ours.Why != "" {
		return b.Ours.Alone("ms", 0, nil), nil
	}
	pace := harness.Pace{Rounds: min(b.Rounds, crowdRounds), Pause: b.Pause}
	alone := pace.Interleave(ctx, b.Ours.As("create alone", b.Ours.CreateToOutput))
	boxes, took, err := b.Ours.Several(ctx, crowdBoxes)
	rows := []harness.Row{onceRow(b, "making them, 8 at once", took)}
	if err == nil {
		keeping := b.Ours.Keeping(b)
		rows = append(rows, crowdMemory(b)...)
		rows = append(rows, among(ctx, b, pace, alone, boxes, keeping)...)
		err = keeping.Close(ctx)
	}
	removal, failed := removeCrowd(ctx, b.Ours, boxes)
	return append(rows, removal), errors.Join(err, failed)
}

// onceRow returns the row of something that was done once.
func onceRow(b *contestants.Field, what string, took time.Duration) harness.Row {
	one := harness.Series{Contestant: b.Ours.As(what, nil), Samples: []time.Duration{took}}
	return harness.Rows(harness.Seconds, []harness.Series{one})[0]
}

// crowdMemory measures the memory of all processes of ours.
func crowdMemory(b *contestants.Field) []harness.Row {
	rows := b.Ours.Alone("MiB", crowdBoxes, func(r *harness.Row) error { return weigh(b.Ours.Shim, r, crowdBoxes, 0.7) })
	rows[0].Contestant += ", memory"
	return rows
}

// among makes boxes, runs commands and lists boxes while all the others stand there.
// alone are the creates without them. keeping is a library that keeps records in memory.
func among(ctx context.Context, b *contestants.Field, pace harness.Pace, alone []harness.Series, boxes []*core.Box, keeping *contestants.Ours) []harness.Row {
	const create, list = "create among them", "list"
	lists := func(o *contestants.Ours) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) { return o.List(ctx, len(boxes)) }
	}
	next := 0
	all := pace.Interleave(ctx,
		b.Ours.As(create, b.Ours.CreateToOutput),
		b.Ours.As("exec among them", func(ctx context.Context) (time.Duration, error) {
			next = (next + 1) % len(boxes)
			t, err := b.Ours.Exec(ctx, boxes[next], contestants.Hello...)
			return t.End, err
		}),
		b.Ours.As(list, lists(b.Ours)),
		keeping.As(list+" from memory", lists(keeping)),
	)
	rows := harness.Rows(harness.Millis, append(alone, all...),
		harness.Bar{Contestant: "ours, " + create, Peer: "ours, create alone", Percentile: 50, Limit: 2})
	for i, r := range rows {
		if strings.HasPrefix(r.Contestant, "ours, "+list) && r.DidNotRun == "" {
			rows[i].Bars = []harness.Verdict{harness.Most(5, "ms", r.P50)}
		}
	}
	return rows
}

// removeCrowd removes the boxes, however many there are.
func removeCrowd(ctx context.Context, o *contestants.Ours, boxes []*core.Box) (harness.Row, error) {
	took, err := harness.AtOnce(len(boxes), crowdRemovers, func(i int) error { return o.Remove(ctx, boxes[i]) })
	r := o.Alone("s", len(boxes), func(r *harness.Row) error {
		r.P50, r.P99 = took.Seconds(), took.Seconds()
		r.Bars = []harness.Verdict{harness.Most(8, "s", r.P50)}
		return err
	})[0]
	r.Contestant += ", removal"
	if len(boxes) < crowdBoxes {
		r.Bars, r.DidNotRun = nil, fmt.Sprintf("only %d boxes were made", len(boxes))
	}
	return r, err
}
