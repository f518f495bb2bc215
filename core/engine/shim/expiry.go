package shim

import (
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// expiryGrace is how long the processes of a box whose time has come have between
// SIGTERM and SIGKILL. They could have known that time.
const expiryGrace = time.Second

// expiryRetry is how long a box is left alone after its end has failed. A pause can take
// seconds before it fails, and the processes of the box stand still meanwhile.
const expiryRetry = time.Second

// schedule has a box expire at the time that its record says, or when that may be tried
// again. b.mu is held.
func (k *keeper) schedule(b *box) {
	if b.timer != nil {
		b.timer.Stop()
	}
	b.timer = nil
	k.scheduleLook(b)
	if b.life == nil || b.rec.ExpiresAt == nil {
		return
	}
	at := *b.rec.ExpiresAt
	if b.retryAt.After(at) {
		at = b.retryAt
	}
	id := b.rec.ID
	b.timer = time.AfterFunc(time.Until(at), func() {
		k.idle.enter()
		defer k.idle.leave()
		k.expire(id)
	})
}

// expire does with a box whose time has come what its options say. A box whose time
// was changed meanwhile is left alone. What fails, as a pause does while a process
// waits for a disk, is tried again after expiryRetry.
func (k *keeper) expire(id string) {
	b, err := k.lock(id)
	if err != nil {
		return // removed
	}
	defer b.change.Unlock()
	rec, now := b.record(), time.Now()
	if !rec.Due(now) || now.Before(b.retryAt) {
		b.mu.Lock()
		defer b.mu.Unlock()
		k.schedule(b) // the clock of the host may have been set back
		return
	}
	if rec.Options.OnExpiry == options.ExpiryPause {
		err = k.expirePaused(b, (*record.Box).PausedByTime)
	} else {
		err = k.expireStopped(b, false)
	}
	if err == nil {
		k.expiries.count(rec.Options, false)
	}
	if err == nil || fault.Is(err, fault.InvalidState) { // it has ended by itself
		return
	}
	k.log.Error("end a box whose time has come", "box", id, "error", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retryAt = time.Now().Add(expiryRetry) // the notes of this try have had it looked at again at once
	k.schedule(b)
}

// expirePaused pauses a box whose time has come, and notes why.
func (k *keeper) expirePaused(b *box, paused func(*record.Box)) error {
	if b.record().Status != api.Running {
		return k.note(b, paused)
	}
	if err := k.note(b, func(rec *record.Box) { rec.Pausing = true }); err != nil {
		return err
	}
	return k.still(b, paused)
}

// expireStopped stops a box whose time has come, which removes it where its options
// say so.
func (k *keeper) expireStopped(b *box, idle bool) error {
	if err := k.note(b, func(rec *record.Box) { rec.Expired, rec.Idle = true, idle }); err != nil {
		return err
	}
	_, err := k.stopBox(b, expiryGrace)
	return err
}

// update changes the options of a box. The time of one that is up begins anew if it
// was changed.
func (k *keeper) update(r wire.UpdateBox) (core.Record, error) {
	b, err := k.lock(r.ID)
	if err != nil {
		return core.Record{}, err
	}
	defer b.change.Unlock()
	change := func(rec *record.Box) {
		rec.Update(options.Update{TTLSeconds: r.TTLSeconds, IdleSeconds: r.IdleSeconds, OnExpiry: r.OnExpiry, AutoStart: r.AutoStart})
	}
	if b.record().Status.Up() {
		err = k.note(b, change)
	} else {
		rec := b.record()
		change(&rec)
		if err = k.records.Put(rec.ID, rec, true); err == nil {
			b.set(rec)
		}
	}
	return b.record().Record, err
}
