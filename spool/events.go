package spool

import (
	"context"

	"sandbox/core/fault"
)

// Kind says what an [Event] is.
type Kind int

// The kinds of events, as the contract names them.
const (
	Log  Kind = iota // output
	Gap              // output that was dropped: From to To
	Exit             // the last one: see [Exec.Record]
)

// Event is one step of an exec.
type Event struct {
	Kind     Kind
	Seq      int64 // 1 and up; of a Gap, the last one that is missing
	From, To int64 // of a Gap
	Next     mark  // of a Gap: how much of each stream lies before what comes next
	Stream   Stream
	Data     []byte // whole characters, as far as it is text; valid until the next call
}

// Events reads an exec's output in order: what is stored, then what comes.
// One goroutine uses it. It holds what it has not read for a limited time.
type Events struct {
	r    reader
	told bool // of what was lost at the end
	done bool // Exit was given
}

// Events returns a reader of the events behind number after; 0 for all. Close
// ends it. Errors: Storage.
func (e *Exec) Events(after int64) (*Events, error) {
	v := &Events{r: reader{e: e, seq: max(after, 0)}}
	if err := e.join(&v.r); err != nil {
		return nil, err
	}
	return v, nil
}

// Watch returns a reader of the events that come from now on. It holds nothing:
// what is dropped before it is read is a Gap. Errors: Storage.
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

// Close ends the reading; it may be called twice.
func (v *Events) Close() { v.r.leave() }

// Wait waits until Next has an event, or has none any more. Errors: ctx's.
func (v *Events) Wait(ctx context.Context) error {
	return v.r.wait(ctx, func() bool { return v.r.seq < v.r.e.out.index.n || v.r.e.ended })
}

// Next returns the next event with its data in buf, of [MaxEvent] bytes; nil
// when there is none now, or none any more after Exit. Errors: Storage.
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
		if e.out.index.dropped > seq { // dropped while it was read
			e.mu.Unlock()
			continue
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

// last returns what comes behind all output. The caller holds mu.
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
	case v.r.seq >= e.exitSeq(): // the caller has had it before
		v.done = true
		return nil
	}
	v.done = true
	return &Event{Kind: Exit, Seq: e.exitSeq()}
}

// Done tells whether no event will come any more.
func (v *Events) Done() bool { return v.done }

// exitSeq returns the number of the last event. The caller holds mu.
func (e *Exec) exitSeq() int64 {
	if e.lost {
		return e.out.index.n + 2
	}
	return e.out.index.n + 1
}

// event reads the event behind seq, and gives where it ends.
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

// read reads a piece of a stream whole.
func (n snapshot) read(s Stream, to []byte, at int64) error {
	if n.files[s] == nil {
		return fault.New(fault.Storage, "a stream of the output is missing")
	}
	_, err := n.files[s].ReadAt(to, at)
	return err
}
