package spool

import (
	"context"
	"os"
	"time"

	"sandbox/core/fault"
)

// reader is what all kinds of readers have in common: a position, and whether
// the output behind it is kept for them.
type reader struct {
	e      *Exec
	seq    int64     // the reader has taken the events up to this one
	strict bool      // its output is kept for ever; that of others for a limited time
	weak   bool      // no output is kept for it
	late   time.Time // since when it has kept the pump waiting
}

// join adds a reader, which must be ended with leave. Errors: Storage.
func (e *Exec) join(r *reader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.out.hold(); err != nil {
		return e.storage(err)
	}
	if err := e.begins(); err != nil {
		e.out.release()
		return e.storage(err)
	}
	e.missed()
	if e.readers == nil {
		e.readers = map[*reader]struct{}{}
	}
	e.readers[r] = struct{}{}
	return nil
}

// missed compares the index of an exec that has ended with the number of bytes
// that were written. If the disk was damaged or somebody edited the index, it
// may cover less than that. Then lost is set, which makes readers see a gap
// before the end. The caller holds mu.
func (e *Exec) missed() {
	if !e.out.final || e.rec.StdoutBytes == nil || e.rec.StderrBytes == nil {
		return
	}
	whole := mark{*e.rec.StdoutBytes, *e.rec.StderrBytes}
	if e.out.index.last != whole {
		e.lost, e.out.sizes = true, whole
	}
}

// leave ends the reader. It returns false if the reader had left already.
func (r *reader) leave() bool {
	e := r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.readers[r]; !ok {
		return false
	}
	delete(e.readers, r)
	if len(e.readers) == 0 {
		e.leaves()
	}
	e.out.release()
	e.nudge()
	return true
}

// moved records that the reader has come to an event that ends at m. A late
// reader that has caught up with half a spool is not late any more. The caller
// holds mu.
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

// wait waits until ready, which is called with mu held, returns true. Errors:
// those of ctx.
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

// snapshot is what a reader needs of the output while the pump continues.
type snapshot struct {
	files [2]*os.File
	sizes mark
	index index
}

// look returns a snapshot of the output. The caller holds mu.
func (e *Exec) look() snapshot { return snapshot{e.out.files, e.out.sizes, e.out.index} }
