package spool

import (
	"context"
	"os"
	"time"

	"sandbox/core/fault"
)

// reader is what both kinds of readers have in common: a place, and whether
// what lies behind it is kept for them.
type reader struct {
	e      *Exec
	seq    int64     // events up to this one were taken
	strict bool      // holds for ever; others for a time
	weak   bool      // holds nothing
	late   time.Time // since when it has kept the pump waiting
}

// join adds a reader; leave ends it. Errors: Storage.
func (e *Exec) join(r *reader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.out.hold(); err != nil {
		return e.storage(err)
	}
	e.missed()
	if e.readers == nil {
		e.readers = map[*reader]struct{}{}
	}
	e.readers[r] = struct{}{}
	return nil
}

// missed holds the index of an exec that has ended against what was written. An
// index that was cut, by a damaged disk or by a hand, tells less than there was:
// readers are told of a gap before the end, which is what lost means. The caller
// holds mu.
func (e *Exec) missed() {
	if !e.out.final || e.rec.StdoutBytes == nil || e.rec.StderrBytes == nil {
		return
	}
	whole := mark{*e.rec.StdoutBytes, *e.rec.StderrBytes}
	if e.out.index.last != whole {
		e.lost, e.out.sizes = true, whole
	}
}

// leave tells whether the reader had not left before.
func (r *reader) leave() bool {
	e := r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.readers[r]; !ok {
		return false
	}
	delete(e.readers, r)
	e.out.release()
	e.nudge()
	return true
}

// moved takes the reader to an event that ends at m. One that has caught up
// with half a spool is late no more. The caller holds mu.
func (r *reader) moved(seq int64, m mark) {
	e := r.e
	if seq == r.seq {
		return
	}
	r.seq = seq
	if !r.late.IsZero() && e.out.sizes.total()-m.total() < e.s.limit/2 {
		r.late = time.Time{}
	}
	if e.full {
		e.nudge()
	}
}

// wait waits until ready, called with mu held, says so. Errors: ctx's.
func (r *reader) wait(ctx context.Context, ready func() bool) error {
	e := r.e
	for {
		e.mu.Lock()
		if ready() {
			e.mu.Unlock()
			return nil
		}
		changed := e.change()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fault.Of(ctx.Err())
		}
	}
}

// snapshot is what a reader needs of the output while others go on.
type snapshot struct {
	files [2]*os.File
	sizes mark
	index index
}

// look returns the output as it is. The caller holds mu.
func (e *Exec) look() snapshot { return snapshot{e.out.files, e.out.sizes, e.out.index} }
