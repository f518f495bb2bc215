package metrics

import (
	"context"
	"log/slog"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/logs/clickhouse"
)

// Intervals at which boxes may be measured.
const (
	DefaultInterval = 10 * time.Second
	MinInterval     = time.Second
	MaxInterval     = time.Hour
)

// lastRows bounds how long the end waits for samples that are not stored yet.
const lastRows = time.Second

// Config holds what a History is made from.
type Config struct {
	// Measure measures all boxes that are up, as [core.Runtime.Measure].
	Measure func(context.Context) ([]core.Measured, error)
	// Interval is how often, from MinInterval to MaxInterval.
	Interval time.Duration
	// Engine has the table of the samples; nil keeps them in memory for an hour.
	// The History's owner closes it after the History.
	Engine *clickhouse.Client
	Log    *slog.Logger
}

// History measures boxes and keeps the samples. Its methods may be called from any
// goroutine. A nil History keeps none, and says so.
type History struct {
	interval time.Duration
	measure  func(context.Context) ([]core.Measured, error)
	store    store
	log      *slog.Logger

	stop    context.CancelFunc
	stopped chan struct{}
}

// Start begins to measure. Close ends it.
func Start(c Config) *History {
	h := &History{interval: c.Interval, measure: c.Measure, log: c.Log, store: &memory{}, stopped: make(chan struct{})}
	if c.Engine != nil {
		h.store = &table{engine: c.Engine, log: c.Log}
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go h.keep(ctx)
	return h
}

// Close ends the measuring. It waits, but not longer than ctx, until the last samples
// are stored.
func (h *History) Close(ctx context.Context) {
	if h == nil {
		return
	}
	h.stop()
	select {
	case <-h.stopped:
	case <-ctx.Done():
	}
}

// keep measures at each interval until ctx ends.
func (h *History) keep(ctx context.Context) {
	defer close(h.stopped)
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	for failed := false; ; {
		failed = h.pass(ctx, failed)
		select {
		case <-tick.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRows)
			defer cancel()
			h.store.add(last, nil)
			return
		}
	}
}

// pass measures all boxes once. It tells whether that failed, which is logged unless
// the pass before had failed too.
func (h *History) pass(ctx context.Context, failed bool) bool {
	all, err := h.measure(ctx)
	if err != nil {
		if !failed && ctx.Err() == nil {
			h.log.Warn("boxes can't be measured: their metrics have a gap", "error", err)
		}
		return true
	}
	samples := make([]Sample, len(all))
	for i, m := range all {
		samples[i] = sampleOf(m)
	}
	h.store.add(ctx, samples)
	return false
}

// errNone is the failure of a nil History.
func errNone() error {
	return fault.New(fault.Unavailable, "the server keeps no metrics of boxes over time: it runs with --metrics-interval 0")
}
