package metrics

import (
	"context"
	"time"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// MaxSteps is how many steps a series has at most: a day by the minute.
const MaxSteps = 1440

// Query says which series is wanted. What is zero is chosen: the last hour, and the
// shortest step that there are samples for and with which the series is not too long.
type Query struct {
	From, To time.Time // a later To than now means now
	Step     time.Duration
}

// DefaultRange is how far back a series begins whose From is left out.
const DefaultRange = time.Hour

// span checks a query of a box and completes it. Errors: InvalidArgument, with fields.
func (q Query) span(box string, now time.Time, interval time.Duration) (span, error) {
	if q.To.IsZero() || q.To.After(now) {
		q.To = now
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-DefaultRange)
	}
	from, to := max(q.From.UnixMilli(), 0), q.To.UnixMilli()
	var p document.Problems
	p.When(from >= to, "from", "interval", "must be before to, and before now")
	p.When(q.Step < 0 || q.Step%time.Second != 0, "step", "range", "must be whole seconds, and at least 1s")
	if err := p.Err(fault.InvalidArgument); err != nil {
		return span{}, err
	}
	least := leastStep(from, to)
	step := q.Step.Milliseconds()
	if step == 0 {
		step = max(least, wholeSeconds(interval.Milliseconds()))
	}
	p.When(step < least, "step", "range", "must be at least %v: from %s to %s it makes more than %d steps",
		time.Duration(least)*time.Millisecond, moment(from).Format(time.RFC3339), moment(to).Format(time.RFC3339), MaxSteps)
	return span{box, from - from%step, to, step}, p.Err(fault.InvalidArgument)
}

// leastStep returns the shortest step, in whole seconds, of which at most MaxSteps lie
// between two times. What is less than a second does not count: it is the time between
// two looks at the clock.
func leastStep(from, to int64) int64 {
	seconds := (to - from) / 1000
	return max(1, (seconds+MaxSteps-1)/MaxSteps) * 1000
}

// wholeSeconds rounds milliseconds up to whole seconds, at least one.
func wholeSeconds(ms int64) int64 { return max(1000, (ms+999)/1000*1000) }

// Series returns what a box used over time. The box need not be up, nor exist. Errors:
// InvalidArgument (the query), Unavailable (nothing is kept, or the log engine does not
// answer), Upstream, Timeout.
func (h *History) Series(ctx context.Context, box string, q Query) (api.BoxSeries, error) {
	if h == nil {
		return api.BoxSeries{}, errNone()
	}
	s, err := q.span(box, time.Now(), h.interval)
	if err != nil {
		return api.BoxSeries{}, err
	}
	lead := s
	lead.from -= max(s.step, wholeSeconds(2*h.interval.Milliseconds())) // for the CPU time before the first point
	samples, err := h.store.read(ctx, lead)
	if err != nil {
		return api.BoxSeries{}, err
	}
	return api.BoxSeries{
		BoxID: box, From: moment(s.from), To: moment(s.to), StepSeconds: s.step / 1000,
		Points: points(samples, s.from),
	}, nil
}

// points returns the points of samples, without those before from.
func points(samples []Sample, from int64) []api.BoxPoint {
	all := []api.BoxPoint{}
	for i, s := range samples {
		if s.At < from {
			continue
		}
		var before *Sample
		if i > 0 {
			before = &samples[i-1]
		}
		all = append(all, s.point(before))
	}
	return all
}

// point returns the point of a sample. before is the sample before it, or nil.
func (s Sample) point(before *Sample) api.BoxPoint {
	return api.BoxPoint{
		At: moment(s.At), CPUPercent: s.cpuPercent(before), MemoryBytes: s.Memory, CacheBytes: s.Cache, Processes: s.Processes,
		DiskBytes: known(s.Disk), DiskRead: known(s.DiskRead), DiskWritten: known(s.DiskWrite),
		NetSent: known(s.NetSent), NetReceived: known(s.NetReceive),
	}
}

// leastMean is the shortest time, in milliseconds, for the CPU's share of a box that has
// only just started. The box's counter includes the work of its start, some 30 ms:
// divided by the first 7 ms of a box that does nothing, that would be 430 %.
const leastMean = 1000

// cpuPercent returns the mean since the sample before, or, if that was another life of
// the box or is not known, since its start or the last second, whichever is longer.
func (s Sample) cpuPercent(before *Sample) float64 {
	used, took := s.CPU, s.At-s.Started
	switch {
	case before != nil && before.Started == s.Started:
		used, took = s.CPU-before.CPU, s.At-before.At
	case took >= 0:
		took = max(took, leastMean)
	}
	if took <= 0 || used < 0 { // the clock went back
		return 0
	}
	return 100 * float64(used) / float64(took*int64(time.Millisecond))
}

// known returns a value, or nil if it is not known.
func known(n int64) *int64 {
	if n == Unknown {
		return nil
	}
	return &n
}
