package shim

import (
	"time"

	"sandbox/api"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// unused has the shim look, when a box can have been without use for long enough at
// the earliest, whether it was. So a box that is used costs one look in the time that
// it may be unused, and nobody has to tell the shim of uses. It is guarded by box.mu.
type unused struct {
	after int // seconds; 0 for a box that may be unused for ever
	timer *time.Timer
	seen  connections // at the last look
}

// scheduleLook has a box looked at if it may not be unused for ever. One that is to be
// looked at already is left alone. b.mu is held.
func (k *keeper) scheduleLook(b *box) {
	after := b.rec.Options.IdleSeconds
	if b.life == nil || b.rec.Status != api.Running {
		after = 0
	}
	if after == b.unused.after {
		return
	}
	b.unused.after, b.unused.seen = after, connections{}
	k.lookIn(b, time.Duration(after)*time.Second)
}

// lookNow looks at a box that an earlier shim has looked at.
func (k *keeper) lookNow(b *box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k.lookIn(b, 0)
}

// lookIn looks at a box after d, unless it may be unused for ever. b.mu is held.
func (k *keeper) lookIn(b *box, d time.Duration) {
	if b.unused.timer != nil {
		b.unused.timer.Stop()
	}
	b.unused.timer = nil
	if b.unused.after == 0 {
		return
	}
	id := b.rec.ID
	b.unused.timer = time.AfterFunc(d, func() {
		k.idle.enter()
		defer k.idle.leave()
		k.look(id)
	})
}

// look does with a box what its options say if it was not used for as long as they
// say, and looks again later if it was. What fails is tried again each second.
func (k *keeper) look(id string) {
	b, err := k.lock(id)
	if err != nil {
		return // removed
	}
	defer b.change.Unlock()
	rec := b.record()
	after := time.Duration(rec.Options.IdleSeconds) * time.Second
	if after == 0 || rec.Status != api.Running {
		return
	}
	left := after
	if !k.reached(b) {
		left, err = k.askIdle(id, after)
	}
	if err == nil && left <= 0 {
		left, err = time.Second, k.endUnused(b)
		if err == nil {
			k.expiries.count(rec.Options, true)
		}
		if err == nil || fault.Is(err, fault.InvalidState) { // it has ended by itself
			return
		}
	}
	if err != nil {
		k.log.Error("end a box that nobody uses", "box", id, "error", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k.lookIn(b, left)
}

// reached reports whether there is a connection through a port of the box, or was one
// since the last look. When that one ended is not known, so the box gets its whole time
// again. The caller holds b.change.
func (k *keeper) reached(b *box) bool {
	rec := b.record()
	now, err := connectionsOf(rec.PID, rec.UIDBase)
	if err != nil {
		k.log.Warn("look at the connections of a box", "box", rec.ID, "error", err)
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.unused.seen
	b.unused.seen = now
	return now.open || before.open || now.accepted != before.accepted
}

// endUnused does with a box that nobody has used what its options say.
func (k *keeper) endUnused(b *box) error {
	if b.record().Options.OnExpiry == options.ExpiryPause {
		return k.expirePaused(b, (*record.Box).PausedByIdleness)
	}
	return k.expireStopped(b, true)
}

// askIdle asks a box's init how long the box must still be without use until it has
// been so for as long as after. If it has, init starts nothing for the next moments.
// After a failure the answer is in how long to ask again.
func (k *keeper) askIdle(id string, after time.Duration) (left time.Duration, err error) {
	conn, err := k.dialInit(id)
	if err != nil {
		return time.Second, fault.Wrap(fault.Engine, err, "reach the init of the box")
	}
	defer conn.Close()
	if err := conn.SetTimeout(telling); err != nil {
		return time.Second, err
	}
	if err := conn.Send(wire.TypeIdle, wire.Idle{AtLeastMS: after.Milliseconds()}); err != nil {
		return time.Second, fault.Wrap(fault.Engine, err, "the init of the box does not answer")
	}
	f, err := conn.Recv()
	f.CloseFDs()
	if err != nil {
		return time.Second, fault.Wrap(fault.Engine, err, "the init of the box does not answer")
	}
	var is wire.IdleIs
	if f.Type != wire.TypeIdleIs || f.Decode(&is) != nil { // as of an init that was made before it could tell
		return after, fault.New(fault.Engine, "the init of the box can't tell when it was used last")
	}
	if is.InUse {
		return after, nil
	}
	return after - time.Duration(max(is.MS, 0))*time.Millisecond, nil
}
