package spool

import (
	"context"

	"sandbox/core/fault"
)

// Kind is the kind of an [Event].
type Kind int

// The kinds of events, as the contract names them.
const (
	Log  Kind = iota // a piece of output
	Gap              // output that was dropped: events From to To
	Exit             // the last event: see [Exec.Record]
)

// Event is one event of an exec.
type Event struct {
	Kind     Kind
	Seq      int64 // counts from 1; of a Gap, the last one that is missing
	From, To int64 // of a Gap: the first and last event that are missing
	Next     mark  // of a Gap: how many bytes of each stream come before the next event
	Stream   Stream
	Data     []byte // whole characters, as far as it is text; valid until the next call
}

// Events reads an exec's output in order: first what is stored, then what
// comes. Only one goroutine may use it. Output that it has not read is kept
// from being dropped for a limited time.
type Events struct {
	r    reader
	told bool // the Gap of lost output at the end was returned
	done bool // Exit was returned
}

// Events returns a reader of the events after number after; 0 means all events.
// The caller ends it with Close. Errors: Storage.
func (e *Exec) Events(after int64) (*Events, error) {
	v := &Events{r: reader{e: e, seq: max(after, 0)}}
	if err := e.join(&v.r); err != nil {
		return nil, err
	}
	return v, nil
}

// Watch returns a reader of the events that come from now on. It does not keep
// output from being dropped: what is dropped before it is read is returned as a
// Gap. Errors: Storage.
func (e *Exec) Watch() (*Events, error) {
	e.mu.Lock()
	now := e.out.index.n
	e.mu.Unlock()
	v := &Events{r: reader{e: e, seq: now, weak: true}}
	if err := e.join(&v.r); err != nil {
		return nil, err
	}
	return v, nil
}

// Close ends the reading. It may be called twice.
func (v *Events) Close() { v.r.leave() }

// Wait waits until Next has an event, or will not have one any more. Errors:
// those of ctx.
func (v *Events) Wait(ctx context.Context) error {
	return v.r.wait(ctx, func() bool { return v.r.seq < v.r.e.out.index.n || v.r.e.ended })
}

// Next returns the next event, with its data in buf, which must have [MaxEvent]
// bytes. It returns nil if there is no event now, or if Exit was returned
// already. Errors: Storage.
func (v *Events) Next(buf []byte) (*Event, error) {
	e, r := v.r.e, &v.r
	for {
		e.mu.Lock()
		now, seq := e.look(), r.seq
		if seq < now.index.dropped {
			r.seq = now.index.dropped
			e.mu.Unlock()
			return &Event{Kind: Gap, Seq: now.index.dropped, From: seq + 1, To: now.index.dropped, Next: now.index.base}, nil
		}
		if seq >= now.index.n {
			defer e.mu.Unlock()
			return v.last(), nil
		}
		e.mu.Unlock()
		event, end, err := now.event(seq, buf)
		e.mu.Lock()
		unsure := e.recheck()
		if e.out.index.dropped > seq { // the event was dropped while it was read
			e.mu.Unlock()
			continue
		}
		if unsure != nil {
			err = unsure
		}
		if err == nil {
			r.moved(seq+1, end)
		}
		e.mu.Unlock()
		if err != nil {
			return nil, e.storage(err)
		}
		return event, nil
	}
}

// last returns the event that follows all output. The caller holds mu.
func (v *Events) last() *Event {
	e := v.r.e
	next := max(v.r.seq, e.out.index.n) + 1
	switch {
	case !e.ended || v.done:
		return nil
	case e.lost && !v.told:
		v.told = true
		v.r.seq = next
		return &Event{Kind: Gap, Seq: next, From: next, To: next, Next: e.out.sizes}
	case v.r.seq >= e.exitSeq(): // the caller asked only for what comes after Exit
		v.done = true
		return nil
	}
	v.done = true
	return &Event{Kind: Exit, Seq: e.exitSeq()}
}

// Done reports whether no event will come any more.
func (v *Events) Done() bool { return v.done }

// exitSeq returns the number of the last event. The caller holds mu.
func (e *Exec) exitSeq() int64 {
	if e.lost {
		return e.out.index.n + 2
	}
	return e.out.index.n + 1
}

// event reads the event that follows seq, and returns it with the mark where it
// ends.
func (n snapshot) event(seq int64, buf []byte) (*Event, mark, error) {
	var m [2]mark
	if err := n.index.read(seq, m[:]); err != nil {
		return nil, mark{}, err
	}
	s, err := span(m[0], m[1])
	if err != nil {
		return nil, mark{}, err
	}
	data := buf[:m[1][s]-m[0][s]]
	if err := n.read(s, data, m[0][s]); err != nil {
		return nil, mark{}, err
	}
	return &Event{Kind: Log, Seq: seq + 1, Stream: s, Data: data}, m[1], nil
}

var errMissing = fault.New(fault.Storage, "a stream of the output is missing")

// read fills to with the bytes of a stream from offset at on.
func (n snapshot) read(s Stream, to []byte, at int64) error {
	if n.files[s] == nil {
		return errMissing
	}
	_, err := n.files[s].ReadAt(to, at)
	return err
}
