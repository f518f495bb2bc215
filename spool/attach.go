package spool

import (
	"context"

	"sandbox/core"
	"sandbox/core/fault"
)

// Attached reads an exec's output byte by byte, and can write its input. The
// command waits for it. One goroutine reads; the rest may be called beside it.
type Attached struct {
	r   reader
	pos mark // of the next byte of each stream
}

// Attach attaches to the exec, at the oldest output that is kept, or behind
// skip bytes of each stream where that is later. Close ends it. Errors:
// InvalidState while another is attached; Storage.
func (e *Exec) Attach(skip [2]int64) (*Attached, error) {
	a := &Attached{r: reader{e: e, strict: true}}
	e.mu.Lock()
	taken := e.attached
	e.attached = true
	e.mu.Unlock()
	if taken {
		return nil, fault.New(fault.InvalidState, "another client is attached to exec %s", e.rec.ID)
	}
	if err := e.join(&a.r); err != nil {
		a.free()
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a.r.seq = e.out.index.dropped
	for s := range a.pos {
		a.pos[s] = min(max(skip[s], e.out.index.base[s]), e.out.sizes[s])
	}
	return a, nil
}

func (a *Attached) free() {
	a.r.e.mu.Lock()
	defer a.r.e.mu.Unlock()
	a.r.e.attached = false
}

// Close detaches: another may attach. The command goes on.
func (a *Attached) Close() {
	if a.r.leave() {
		a.free()
	}
}

// From returns where in each stream the reading begins.
func (a *Attached) From() (stdout, stderr int64) { return a.pos[Stdout], a.pos[Stderr] }

// Wait waits until Next has something, or the exec has ended. Errors: ctx's.
func (a *Attached) Wait(ctx context.Context) error {
	e := a.r.e
	return a.r.wait(ctx, func() bool {
		return e.ended || e.out.sizes[Stdout] > a.pos[Stdout] || e.out.sizes[Stderr] > a.pos[Stderr]
	})
}

// Next reads on into buf, in the order in which output came: n bytes of one
// stream; 0 when there are none now. Errors: Storage.
func (a *Attached) Next(buf []byte) (s Stream, n int, err error) {
	e := a.r.e
	e.mu.Lock()
	now := e.look()
	e.mu.Unlock()
	s, end, seq, err := a.piece(now, int64(len(buf)))
	if err == nil && end > a.pos[s] {
		n = int(end - a.pos[s])
		err = now.read(s, buf[:n], a.pos[s])
	}
	if err != nil {
		return 0, 0, e.storage(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a.pos[s] = end
	a.r.moved(seq, a.pos)
	return s, n, nil
}

// piece finds what to read next: events of one stream that follow each other,
// and behind the last event what is not in one yet. seq is the last event that
// is read whole by it.
func (a *Attached) piece(now snapshot, most int64) (s Stream, end, seq int64, err error) {
	var block [32]mark
	marks := block[:min(int64(len(block)), now.index.n-a.r.seq)]
	if len(marks) > 0 {
		if err := now.index.read(a.r.seq+1, marks); err != nil {
			return 0, 0, 0, err
		}
	}
	s, seq, found := Stdout, a.r.seq, false
	end = a.pos[s]
	for _, m := range marks {
		at, more := a.ahead(m)
		if more && found && at != s {
			return s, end, seq, nil
		}
		if more {
			s, found = at, true
			if end = m[s]; end > a.pos[s]+most {
				return s, a.pos[s] + most, seq, nil
			}
		}
		seq++
	}
	if found || seq < now.index.n {
		return s, end, seq, nil
	}
	for _, t := range []Stream{Stdout, Stderr} {
		if now.sizes[t] > a.pos[t] {
			return t, min(now.sizes[t], a.pos[t]+most), seq, nil
		}
	}
	return s, end, seq, nil
}

// ahead returns the stream in which m lies ahead of what was read. What was read
// covers the mark before m, so there is one at most.
func (a *Attached) ahead(m mark) (Stream, bool) {
	for _, s := range []Stream{Stdout, Stderr} {
		if m[s] > a.pos[s] {
			return s, true
		}
	}
	return Stdout, false
}

// Ended tells whether the exec has ended and all its output was read, and
// whether some of it was lost on a full disk.
func (a *Attached) Ended() (ended, lost bool) {
	e := a.r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended && a.pos == e.out.sizes, e.lost
}

// Open tells whether the command takes input from who attaches.
func (a *Attached) Open() bool { return a.r.e.open || a.r.e.Record().TTY }

// Command returns the command while it runs, to write its input, signal or
// resize it. Its output stays the store's. Errors: InvalidState.
func (a *Attached) Command() (*core.Exec, error) { return a.r.e.running() }
