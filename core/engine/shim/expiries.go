package shim

import (
	"log/slog"
	"sync"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/options"
)

// expiries counts the boxes whose time has come. The counts go on from those of earlier
// shims of the home. A shim that is killed between an end and its count leaves that one
// out.
type expiries struct {
	file record.Expiries
	log  *slog.Logger

	mu     sync.Mutex
	counts core.Expiries
}

func newExpiries(home string, log *slog.Logger) *expiries {
	e := &expiries{file: record.OpenExpiries(home), log: log}
	var err error
	if e.counts, err = e.file.Get(); err != nil {
		log.Error("read how many boxes came to the end of their time: it is counted anew", "error", err)
	}
	return e
}

// count counts a box that has just ended or paused, since nobody used it or since its
// time was over.
func (e *expiries) count(o options.Box, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts.Add(o, idle)
	if err := e.file.Put(e.counts); err != nil {
		e.log.Error("count a box that came to the end of its time", "error", err)
	}
}
