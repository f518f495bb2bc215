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

// pace is how often and how fast contestants run.
type pace struct {
	rounds int
	// pause is waited before each run. A process that is moved into a cgroup
	// waits for an RCU grace period (10 ms and more), unless someone else on
	// the host was moved in the 20 ms before: without a pause the neighbours
	// in a round pay for each other.
	pause time.Duration
}

// interleave runs all contestants once a round, in a new order each round, so
// that nobody always runs first or always behind the same neighbour. A
// contestant that fails is out.
func (p pace) interleave(ctx context.Context, cs ...contestant) []series {
	out := make([]series, len(cs))
	for i, c := range cs {
		out[i].contestant = c
	}
	for round := -warmup; round < p.rounds; round++ {
		for _, i := range rand.Perm(len(cs)) {
			if ctx.Err() == nil {
				out[i].once(ctx, p.pause, round >= 0)
			}
		}
	}
	return out
}

// once runs the contestant, after a pause.
func (s *series) once(ctx context.Context, pause time.Duration, counts bool) {
	if s.why != "" {
		return
	}
	time.Sleep(pause)
	took, err := s.run(ctx)
	switch {
	case err != nil:
		s.why = err.Error()
	case counts:
		s.samples = append(s.samples, took)
	}
}

// percentile returns the nearest-rank percentile p of samples: one that was
// measured. Zero without samples.
func percentile(samples []time.Duration, p int) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := (len(sorted)*p + 99) / 100 // rounded up
	return sorted[max(rank, 1)-1]
}
