package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"sandbox/core"
)

const (
	batchSize   = 100
	batchAtOnce = 8
	batchRounds = 5
)

// measureBatch makes many boxes, several at once. The peers' time holds the
// removals too: `run` is one command.
func measureBatch(ctx context.Context, b *bench) ([]row, error) {
	peer := func(o *oci) contestant {
		one := o.creates(ctx)
		return o.contestant(func(ctx context.Context) (time.Duration, error) {
			return batch(batchSize, func(int) error {
				_, err := one.run(ctx)
				return err
			})
		})
	}
	all := pace{rounds: batchRounds}.interleave(ctx, b.ours.contestant(b.ours.batch), peer(b.peers.runc), peer(b.peers.crun))
	return rows(seconds, all, bar{contestant: "ours", peer: "runc", percentile: 50, limit: 1.3}), nil
}

// batch calls one for 0 to n-1, batchAtOnce at a time.
func batch(n int, one func(i int) error) (time.Duration, error) {
	errs := make([]error, n)
	work := make(chan int)
	var wg sync.WaitGroup
	start := time.Now()
	for range batchAtOnce {
		wg.Go(func() {
			for i := range work {
				errs[i] = one(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}

// batch makes boxes to their first output; they are removed afterwards, untimed.
func (o *ours) batch(ctx context.Context) (time.Duration, error) {
	boxes := make([]*core.Box, batchSize)
	took, err := batch(batchSize, func(i int) error {
		box, err := o.create(ctx)
		if err != nil {
			return err
		}
		boxes[i] = box
		_, err = o.exec(ctx, box, hello...)
		return err
	})
	for _, box := range boxes {
		if box != nil {
			err = errors.Join(err, o.remove(ctx, box))
		}
	}
	return took, err
}
