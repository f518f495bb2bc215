package main

import (
	"context"
	"time"
)

// hello is the command of most measurements.
var hello = []string{"/bin/echo", "hi"}

// measureCreate makes boxes, one at a time.
func measureCreate(ctx context.Context, b *bench) ([]row, error) {
	all := b.interleave(ctx,
		b.ours.contestant(b.ours.createToOutput),
		b.peers.runc.creates(ctx),
		b.peers.crun.creates(ctx),
		b.peers.bwrap.contestant(func(ctx context.Context) (time.Duration, error) {
			t, err := b.peers.bwrap.run(ctx, hello...)
			return t.first, err
		}),
	)
	return rows(millis, all,
		bar{contestant: "ours", peer: "runc", percentile: 50, limit: 0.9},
		bar{contestant: "ours", peer: "runc", percentile: 99, limit: 1.5},
	), nil
}

// creates runs a new container to its first byte; its end and its removal are
// not in the time.
func (o *oci) creates(ctx context.Context) contestant {
	var bundle string
	if o.why == "" {
		var err error
		if bundle, err = o.bundle(ctx, "hello", hello...); err != nil {
			o.why = err.Error()
		}
	}
	return o.contestant(func(ctx context.Context) (time.Duration, error) {
		t, err := o.run(ctx, bundle)
		return t.first, err
	})
}

// measureSteps shows where the time of ours goes.
func measureSteps(ctx context.Context, b *bench) ([]row, error) {
	steps := []string{"create", "first exec to its first byte", "first exec to its exit status", "stop and remove"}
	all := make([]series, len(steps))
	for i, name := range steps {
		all[i].name = name
	}
	for round := -warmup; round < b.rounds && ctx.Err() == nil; round++ {
		time.Sleep(b.pause)
		took, err := b.ours.steps(ctx)
		if err != nil {
			return rows(millis, []series{{contestant: contestant{name: "ours", why: err.Error()}}}), nil
		}
		for i := range took {
			if round >= 0 {
				all[i].samples = append(all[i].samples, took[i])
			}
		}
	}
	return rows(millis, all), nil
}
