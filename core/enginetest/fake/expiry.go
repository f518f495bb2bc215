package fake

import (
	"context"
	"syscall"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/options"
)

// Update changes options of a box.
func (e *Engine) Update(_ context.Context, id string, u options.Update) (core.Record, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.in(id, "")
	if err != nil {
		return core.Record{}, err
	}
	b.record.Options, b.record.UpdatedAt = u.Apply(b.record.Options), time.Now().UTC()
	if u.TTLSeconds != nil && b.record.Status.Up() {
		e.setTime(b)
	}
	if u.IdleSeconds != nil {
		e.setIdle(b)
	}
	return b.record, nil
}

// setIdle looks at a box when it can have been without use for long enough. Here only
// execs use it. e.mu is held.
func (e *Engine) setIdle(b *box) {
	b.looks++
	if after := time.Duration(b.record.Options.IdleSeconds) * time.Second; after > 0 {
		id, looks := b.record.ID, b.looks
		b.used = time.Now()
		time.AfterFunc(after, func() { e.look(id, looks) })
	}
}

// look expires a box that was not used, unless what it may be was changed.
func (e *Engine) look(id string, looks int) {
	e.mu.Lock()
	b := e.boxes[id]
	if b == nil || b.looks != looks || b.record.Status != api.Running {
		e.mu.Unlock()
		return
	}
	after := time.Duration(b.record.Options.IdleSeconds) * time.Second
	for _, c := range b.execs {
		if c.running() {
			b.used = time.Now()
		}
	}
	left := after - time.Since(b.used)
	e.mu.Unlock()
	if left > 0 {
		time.AfterFunc(min(left, 20*time.Millisecond), func() { e.look(id, looks) })
		return
	}
	e.end(id, "idle")
}

// setTime has the time of a box begin. e.mu is held.
func (e *Engine) setTime(b *box) {
	r := &b.record
	r.ExpiresAt = nil
	if r.Options.TTLSeconds == 0 {
		return
	}
	d := time.Duration(r.Options.TTLSeconds) * time.Second
	at := time.Now().UTC().Add(d)
	r.ExpiresAt = &at
	id := r.ID
	time.AfterFunc(d, func() { e.expire(id, at) })
}

// expire does with a box what its options say, unless its time was changed.
func (e *Engine) expire(id string, at time.Time) {
	rec, err := e.Get(context.Background(), id)
	if err != nil || rec.ExpiresAt == nil || !rec.ExpiresAt.Equal(at) {
		return
	}
	e.end(id, "expired")
}

// end does with a box what its options say.
func (e *Engine) end(id, reason string) {
	rec, err := e.Get(context.Background(), id)
	if err != nil {
		return
	}
	switch rec.Options.OnExpiry {
	case options.ExpiryRemove:
		err = e.Remove(context.Background(), id, true)
	case options.ExpiryPause:
		_, err = e.turn(id, api.Running, syscall.SIGSTOP, func(r *core.Record) {
			paused(r)
			r.Reason, r.ExpiresAt = reason, nil
		})
	default:
		_, err = e.stop(id, time.Second, reason)
	}
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ends.Add(rec.Options, reason == "idle")
	}
}
