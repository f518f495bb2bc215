package spool

import (
	"sandbox/core"
	"sandbox/core/fault"
)

// Attached reads an exec's output, and can write its input. Output that it has not
// read is never dropped; the command waits instead.
type Attached struct {
	Bytes
	place **Attached // where the exec has it
}

// Attach attaches to the exec. Reading begins at the oldest output that is
// kept, or after skip bytes of each stream if that is later. The caller ends it
// with Close. Errors: InvalidState while another is attached and the exec runs; Storage.
func (e *Exec) Attach(skip [2]int64) (*Attached, error) { return e.attach(&e.other, skip) }

// AttachOwner attaches the client that a terminal was opened for. One client of
// Attach may be there as well, and reads along; see [Attached.Writes]. Errors: those
// of Attach.
func (e *Exec) AttachOwner() (*Attached, error) { return e.attach(&e.owner, [2]int64{}) }

func (e *Exec) attach(place **Attached, skip [2]int64) (*Attached, error) {
	a := &Attached{Bytes: Bytes{r: reader{e: e, strict: true}}, place: place}
	e.mu.Lock()
	// A client that was told the end may leave later than the next one comes.
	taken := *place != nil && !e.ended
	if !taken {
		*place = a
	}
	e.mu.Unlock()
	if taken {
		return nil, fault.New(fault.InvalidState, "another client is attached to exec %s", e.id)
	}
	if err := a.begin(skip); err != nil {
		a.free()
		return nil, err
	}
	return a, nil
}

// Pass has send take what Next would return, at most most bytes, as the place where
// it lies, so that it need not be copied. It may be sent with sendfile(2): what a socket
// holds of it stays as it was when the store frees its space. Pass returns how many bytes
// there were: 0 if there are none now, and send is not called. Errors: Storage; those
// of send, after which the same bytes come again.
func (a *Attached) Pass(most int64, send func(Piece) error) (int64, error) {
	a.r.e.mu.Lock()
	a.r.e.out.passed = true
	a.r.e.mu.Unlock()
	return a.pass(most, send)
}

func (a *Attached) free() {
	a.r.e.mu.Lock()
	defer a.r.e.mu.Unlock()
	if *a.place == a {
		*a.place = nil
	}
	a.r.e.nudge() // a pump that woke when the reader left has seen the place still taken
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

// Writes returns nil if this client may write input and signals now. What is written to
// an exec that has ended harms nobody, so that it may then, also after Close. Errors:
// InvalidState while the client that the terminal was opened for is there.
func (a *Attached) Writes() error {
	e := a.r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.writer() != a && !e.ended {
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

// Open reports whether the command takes input from an attached client.
func (a *Attached) Open() bool { return a.r.e.open || a.r.e.Record().TTY }

// Command returns the command while it runs, to end its input, to signal it
// or to resize its terminal, if Writes allows it. Its input is written with [Exec.Feed],
// and the store alone reads its output. Errors: InvalidState.
func (a *Attached) Command() (*core.Exec, error) { return a.r.e.running() }
