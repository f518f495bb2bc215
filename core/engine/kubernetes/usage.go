package kubernetes

import (
	"context"
	"slices"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// Usage returns what a box uses, as its init tells; see [core.Boxes].
func (e *Engine) Usage(ctx context.Context, id string) (core.Usage, error) {
	if _, _, err := e.find(ctx, id); err != nil {
		return core.Usage{}, err
	}
	s, err := e.Stats(ctx, id)
	if err != nil && !fault.Is(err, fault.InvalidState) { // a box that has ended has no counts
		return core.Usage{}, err
	}
	return used(s), nil
}

func used(s wire.Stats) core.Usage {
	u := core.Usage{Commands: s.Execs, ExecErrors: s.ExecErrors, StdinBytes: s.Streams.Stdin, OutputBytes: s.Streams.Output}
	if own := s.Used; own != nil {
		u.CPU, u.MemoryBytes, u.CacheBytes, u.Processes = time.Duration(own.CPUNS), own.MemoryBytes, own.CacheBytes, own.Processes
	}
	return u
}

// measuring is how many boxes are asked at once.
const measuring = 32

// Measure asks all boxes that are up; see [core.Boxes]. One that does not answer is left
// out.
func (e *Engine) Measure(ctx context.Context) ([]core.Measured, error) {
	recs, err := e.List(ctx)
	if err != nil {
		return nil, err
	}
	recs = slices.DeleteFunc(recs, func(r core.Record) bool { return !r.Status.Up() })
	var mu sync.Mutex
	var all []core.Measured
	var asking sync.WaitGroup
	places := make(chan struct{}, measuring)
	for _, rec := range recs {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			s, err := e.Stats(ctx, rec.ID)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, core.Measured{Record: rec, Usage: used(s), At: time.Now()})
		})
	}
	asking.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fault.Of(err)
	}
	return all, nil
}

// Expiries are not counted: no program has to be there when a time comes.
func (e *Engine) Expiries(context.Context) (core.Expiries, error) { return core.Expiries{}, nil }

// Sweep removes boxes that have ended; see [core.Boxes].
func (e *Engine) Sweep(ctx context.Context, olderThan time.Duration) (core.Swept, error) {
	var swept core.Swept
	if err := e.begin(ctx); err != nil {
		return swept, err
	}
	recs, err := e.List(ctx)
	if err != nil {
		return swept, err
	}
	for _, rec := range recs {
		if !sweepable(rec, olderThan) {
			continue
		}
		switch err := e.Remove(ctx, rec.ID, false); {
		case err == nil:
			swept.Boxes = append(swept.Boxes, rec.ID)
		case !fault.Is(err, fault.BoxNotFound) && !fault.Is(err, fault.InvalidState): // removed or started meanwhile
			return swept, err
		}
	}
	return swept, nil
}

func sweepable(rec core.Record, olderThan time.Duration) bool {
	ended := rec.Status == api.Stopped || rec.Status == api.Failed
	return ended && rec.StoppedAt != nil && time.Since(*rec.StoppedAt) >= olderThan
}
