package spool

import (
	"os"
	"time"
)

// file returns a stream's file and the offset of its next byte.
func (e *Exec) file(s Stream) (*os.File, int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, err := e.out.file(s)
	return f, e.out.sizes[s], err
}

// grow announces n new bytes of a stream to the readers: those that form whole
// characters, or all of them if whole is set.
func (e *Exec) grow(s Stream, n int64, whole bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out.sizes[s] += n
	e.command.Took(e.out.sizes.total())
	e.publish()
	return e.out.addEvents(s, whole)
}

// lead is how far the output of a terminal may be ahead of the client that writes
// on it. What answers a key is shown behind it: so it must not be much.
const lead = 256 << 10

// makeRoom drops the oldest output if there is too much. It waits while readers
// that hold this output do not read on. It returns false if the store is
// closing.
func (e *Exec) makeRoom() bool {
	for {
		e.mu.Lock()
		if e.stop {
			e.mu.Unlock()
			return false
		}
		wait := e.crowded()
		e.full = wait > 0 // from now on, a reader that moves wakes the pump
		e.mu.Unlock()
		if wait == 0 {
			return true
		}
		e.rest(wait)
	}
}

// crowded returns 0 if there is room for more output, of which it may drop the
// oldest, or else how long to wait at most before checking again. The caller holds
// mu.
func (e *Exec) crowded() time.Duration {
	if w := e.writer(); e.rec.TTY && w != nil && e.out.sizes.total()-w.pos.total() >= lead {
		return time.Minute
	}
	if e.out.kept() < e.s.limit {
		return 0
	}
	bound, wait := e.bound(time.Now())
	dropped, err := e.out.shrink(e.s.limit-e.s.limit/16, bound)
	if err != nil {
		e.s.log.Error("old output can't be dropped", "exec_id", e.id, "error", err)
	}
	if dropped && e.out.kept() < e.s.limit {
		return 0
	}
	return wait
}

// makeSpace frees half of the space that the output takes, on a disk that is
// full. It returns whether it freed any.
func (e *Exec) makeSpace() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	bound, _ := e.bound(time.Now())
	dropped, err := e.out.shrink(e.out.kept()/2, bound)
	return dropped && err == nil
}

// bound returns the first event that a reader holds, and how long to wait at
// most before checking again. An events reader that keeps the pump waiting is
// late, and holds nothing once its time is over. The caller holds mu.
func (e *Exec) bound(now time.Time) (int64, time.Duration) {
	bound, wait := e.out.index.n, time.Minute
	for r := range e.readers {
		switch {
		case r.weak:
			continue
		case r.strict:
		case r.late.IsZero() && r.seq == e.out.index.dropped:
			r.late = now
			wait = min(wait, e.s.timeout)
		case !r.late.IsZero():
			left := e.s.timeout - now.Sub(r.late)
			if left <= 0 {
				continue
			}
			wait = min(wait, left)
		}
		bound = min(bound, max(r.seq, e.out.index.dropped))
	}
	return bound, wait
}

// rest waits until a reader has read on, the store closes or the box is
// removed, but at most for d.
func (e *Exec) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-e.room:
	case <-timer.C:
	}
	e.mu.Lock()
	e.full = false
	e.mu.Unlock()
}

// nudge wakes the pump if it is waiting in rest. The caller holds mu.
func (e *Exec) nudge() {
	select {
	case e.room <- struct{}{}:
	default:
	}
}

func (e *Exec) stopping() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stop
}

// gone reports whether the box was removed.
func (e *Exec) gone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out.removed
}

// giveUp notes that output was lost, so that readers are told.
func (e *Exec) giveUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost = true
}
