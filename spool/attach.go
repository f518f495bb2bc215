package spool

import (
	"context"

	"sandbox/core"
	"sandbox/core/fault"
)

// Attached reads an exec's output byte by byte, and can write its input. Output
// that it has not read is never dropped; the command waits instead. Only one
// goroutine may read; the other methods may be called at the same time.
type Attached struct {
	r     reader
	place **Attached // where the exec has it
	from  mark       // the first byte of each stream
	pos   mark       // the next one
}

// Attach attaches to the exec. Reading begins at the oldest output that is
// kept, or after skip bytes of each stream if that is later. The caller ends it
// with Close. Errors: InvalidState while another is attached; Storage.
func (e *Exec) Attach(skip [2]int64) (*Attached, error) { return e.attach(&e.other, skip) }

// AttachOwner attaches the client that a terminal was opened for. One client of
// Attach may be there as well, and reads along; see [Attached.Writes]. Errors: those
// of Attach.
func (e *Exec) AttachOwner() (*Attached, error) { return e.attach(&e.owner, [2]int64{}) }

func (e *Exec) attach(place **Attached, skip [2]int64) (*Attached, error) {
	a := &Attached{r: reader{e: e, strict: true}, place: place}
	e.mu.Lock()
	taken := *place != nil
	if !taken {
		*place = a
	}
	e.mu.Unlock()
	if taken {
		return nil, fault.New(fault.InvalidState, "another client is attached to exec %s", e.id)
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
	a.from = a.pos
	e.nudge() // the pump may have seen a position of 0
	return a, nil
}

func (a *Attached) free() {
	a.r.e.mu.Lock()
	defer a.r.e.mu.Unlock()
	*a.place = nil
}

// Leave detaches as Close does, and notes how many bytes of each stream the client
// has had, at most what was read until now, so that the next one can go on from
// there.
func (a *Attached) Leave(had [2]int64) {
	e := a.r.e
	e.mu.Lock()
	for s := range had {
		e.left[s] = min(max(had[s], a.from[s]), a.pos[s])
	}
	e.mu.Unlock()
	a.Close()
}

// Left returns how many bytes of each stream the last client had when it called
// Leave. A client of an earlier process does not count.
func (e *Exec) Left() [2]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.left
}

// writer returns the client that may write, or nil if none is attached. The caller
// holds mu.
func (e *Exec) writer() *Attached {
	if e.owner != nil {
		return e.owner
	}
	return e.other
}

// Writes returns nil if this client may write input and signals now. Errors:
// InvalidState while the client that the terminal was opened for is there.
func (a *Attached) Writes() error {
	e := a.r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writer() != a {
		return fault.New(fault.InvalidState, "exec %s is a terminal whose own client is there and writes alone: here it can only be watched", e.id)
	}
	return nil
}

// Close detaches, so that another may attach. The command continues.
func (a *Attached) Close() {
	if a.r.leave() {
		a.free()
	}
}

// From returns the offset in each stream at which the reading begins, in bytes.
func (a *Attached) From() (stdout, stderr int64) { return a.from[Stdout], a.from[Stderr] }

// Wait waits until Next has something to return, or the exec has ended. Errors:
// those of ctx.
func (a *Attached) Wait(ctx context.Context) error {
	e := a.r.e
	return a.r.wait(ctx, func() bool {
		return e.ended || e.out.sizes[Stdout] > a.pos[Stdout] || e.out.sizes[Stderr] > a.pos[Stderr]
	})
}

// Next reads on into buf, in the order in which output came. It returns n bytes
// of one stream, or 0 if there are none now. Errors: Storage.
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

// piece finds what to read next: consecutive events of one stream or, after the
// last event, bytes that are not in an event yet. seq is the last event that is
// complete once this has been read.
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

// ahead returns the stream in which m is ahead of what was read. At most one
// stream is, because what was read includes the mark before m.
func (a *Attached) ahead(m mark) (Stream, bool) {
	for _, s := range []Stream{Stdout, Stderr} {
		if m[s] > a.pos[s] {
			return s, true
		}
	}
	return Stdout, false
}

// Ended reports whether the exec has ended and all its output was read, and
// whether some of it was lost on a full disk.
func (a *Attached) Ended() (ended, lost bool) {
	e := a.r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended && a.pos == e.out.sizes, e.lost
}

// Open reports whether the command takes input from an attached client.
func (a *Attached) Open() bool { return a.r.e.open || a.r.e.Record().TTY }

// Command returns the command while it runs, to write its input, to signal it
// or to resize its terminal, if Writes allows it. The store alone reads its output. Errors:
// InvalidState.
func (a *Attached) Command() (*core.Exec, error) { return a.r.e.running() }
