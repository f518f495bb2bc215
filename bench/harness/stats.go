// Package harness times things and judges the figures. It knows nothing of boxes:
//
//   - a [Contestant] is one way of doing what is measured; [Pace.Interleave] runs
//     several of them in turn and returns a [Series] of times for each;
//   - a [Command] is a program that is timed through its stdout, a [Conversation]
//     one that is asked again and again, a [Place] the namespaces they run in;
//   - [Rows] makes the rows of a table out of series and holds them to [Bar]s, and
//     a [Report] prints and keeps them.
//
// Package contestants makes contestants with it, and package measures lets them
// run.
package harness

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Warmup is the number of rounds that are run first and whose times are
// dropped.
const Warmup = 3

// Contestant is one way of doing what is measured.
type Contestant struct {
	Name, Version, Isolation string
	Why                      string // why it can't run; "" if it can
	// Run does the measured thing once and returns how long the part that
	// counts took. Everything that it made is gone when it returns.
	Run func(context.Context) (time.Duration, error)
}

// Series holds the times of one contestant.
type Series struct {
	Contestant
	Samples []time.Duration
}

// Pace says how often and how fast contestants run.
type Pace struct {
	Rounds int
	// Pause is the pause before each run. A process that is moved into a cgroup
	// waits for an RCU grace period (10 ms and more), unless another process on
	// the host was moved in the 20 ms before. Without a pause, contestants that
	// are neighbours in a round would affect each other's times.
	Pause time.Duration
}

// Interleave runs all contestants once a round. The order is new in each round,
// so that no contestant always runs first or always behind the same neighbour.
// A contestant that fails is not run again.
func (p Pace) Interleave(ctx context.Context, cs ...Contestant) []Series {
	out := make([]Series, len(cs))
	for i, c := range cs {
		out[i].Contestant = c
	}
	for round := -Warmup; round < p.Rounds; round++ {
		for _, i := range rand.Perm(len(cs)) {
			if ctx.Err() == nil {
				out[i].once(ctx, p.Pause, round >= 0)
			}
		}
	}
	return out
}

// once runs the contestant, after a pause.
func (s *Series) once(ctx context.Context, pause time.Duration, counts bool) {
	if s.Why != "" {
		return
	}
	time.Sleep(pause)
	took, err := s.Run(ctx)
	switch {
	case err != nil:
		s.Why = err.Error()
	case counts:
		s.Samples = append(s.Samples, took)
	}
}

// percentile returns the nearest-rank percentile p of samples, which is one of
// the measured values. It returns zero if there are no samples.
func percentile(samples []time.Duration, p int) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := (len(sorted)*p + 99) / 100 // rounded up
	return sorted[max(rank, 1)-1]
}
