package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// warmup is the number of rounds that are run first and dropped.
const warmup = 3

// contestant is one way of doing what is measured.
type contestant struct {
	name, version, isolation string
	why                      string // it can't run; "" if it can
	// run does it once and says how long the part that counts took. What it
	// made is gone when it returns.
	run func(context.Context) (time.Duration, error)
}

// series is what one contestant showed.
type series struct {
	contestant
	samples []time.Duration
}

// interleave runs all contestants once a round, in a new order each round, so
// that nobody always runs first or always behind the same neighbour. A
// contestant that fails is out.
func interleave(ctx context.Context, rounds int, cs ...contestant) []series {
	out := make([]series, len(cs))
	for i, c := range cs {
		out[i].contestant = c
	}
	for round := -warmup; round < rounds; round++ {
		for _, i := range rand.Perm(len(cs)) {
			s := &out[i]
			if s.why != "" || ctx.Err() != nil {
				continue
			}
			took, err := s.run(ctx)
			switch {
			case err != nil:
				s.why = err.Error()
			case round >= 0:
				s.samples = append(s.samples, took)
			}
		}
	}
	return out
}

// percentile gives the nearest-rank percentile p of samples: one that was
// measured. Zero without samples.
func percentile(samples []time.Duration, p int) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := (len(sorted)*p + 99) / 100 // rounded up
	return sorted[max(rank, 1)-1]
}
