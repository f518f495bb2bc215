package shim

import (
	"fmt"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// pause has the processes of a running box stand still. Where a process does not, or
// the record can't be written, the box runs on as if nothing had been asked.
func (k *keeper) pause(id string, reclaim bool) (core.Record, error) {
	b, err := k.lock(id)
	if err != nil {
		return core.Record{}, err
	}
	defer b.change.Unlock()
	switch status := b.record().Status; status {
	case api.Running:
	case api.Paused:
		return core.Record{}, fault.New(fault.InvalidState, "box %s is paused already", id)
	default:
		return core.Record{}, fault.New(fault.InvalidState, "box %s is %s, and only a running box can be paused", id, status)
	}
	if err := checkFreezable(); err != nil {
		return core.Record{}, err
	}
	slot := groups(b.slot())
	if file, _ := slot.reclaimer(); reclaim && file == "" {
		return core.Record{}, fault.New(fault.Unsupported, "this host's kernel can't reclaim the memory of a box: pause it without reclaim")
	}
	if err := k.note(b, func(rec *record.Box) { rec.Pausing = true }); err != nil {
		return core.Record{}, err
	}
	if err := k.still(b, (*record.Box).Paused); err != nil {
		return core.Record{}, err
	}
	if reclaim {
		slot.reclaim()
	}
	return b.record().Record, nil
}

// still has a box stand still and writes to its record that it does, and why. On failure
// the box runs on. The caller holds b.change.
func (k *keeper) still(b *box, paused func(*record.Box)) error {
	rec := b.record()
	err := k.tellInit(rec.ID, wire.TypePause)
	if err == nil {
		err = groups(b.slot()).freeze()
	}
	if err == nil {
		err = k.note(b, paused)
	}
	if err == nil {
		return nil
	}
	if failed := k.wake(b); failed != nil {
		k.log.Error("let a box go on that could not be paused", "box", rec.ID, "error", failed)
	}
	return fmt.Errorf("pause box %s: %w", rec.ID, err)
}

// resume lets the processes of a paused box go on. If the record can't be written,
// they stand still again.
func (k *keeper) resume(id string) (core.Record, error) {
	b, err := k.lock(id)
	if err != nil {
		return core.Record{}, err
	}
	defer b.change.Unlock()
	if status := b.record().Status; status != api.Paused {
		return core.Record{}, fault.New(fault.InvalidState, "box %s is %s, and only a paused box can be resumed", id, status)
	}
	if err := k.wake(b); err != nil {
		if failed := k.still(b, (*record.Box).Paused); failed != nil {
			k.log.Error("pause a box again that could not be resumed", "box", id, "error", failed)
		}
		return core.Record{}, fmt.Errorf("resume box %s: %w", id, err)
	}
	return b.record().Record, nil
}

// wake lets a box go on and writes to its record that it does. Its processes go on before
// init hears of it: what init starts in a group that is frozen stands still before its
// exec, and keeps init, which has one CPU, from its answer. The caller holds b.change.
func (k *keeper) wake(b *box) error {
	groups(b.slot()).thaw()
	if err := k.tellInit(b.record().ID, wire.TypeResume); err != nil {
		return err
	}
	return k.note(b, (*record.Box).Resumed)
}

// settlePause ends what an earlier shim had begun: a box that its record calls paused
// is paused, and one that was about to be goes on. The caller holds b.change.
func (k *keeper) settlePause(b *box) error {
	switch rec := b.record(); {
	case rec.Status == api.Paused:
		return k.still(b, (*record.Box).Paused)
	case rec.Pausing:
		return k.wake(b)
	}
	return nil
}

// slot returns the name of what the box has in the kernel while it is up.
func (b *box) slot() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rec.Slot()
}

// note changes the record of a box that is up, and writes it. A power cut ends the
// box, so the record need not outlive that. Errors: InvalidState (it has ended),
// Storage: the record is as it was.
func (k *keeper) note(b *box, change func(*record.Box)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life == nil {
		return fault.New(fault.InvalidState, "box %s has ended", b.rec.ID)
	}
	rec := b.rec
	change(&rec)
	if err := k.records.Put(rec.ID, rec, false); err != nil {
		return err
	}
	b.rec = rec
	k.schedule(b)
	return nil
}

// telling bounds how long init may take to hear of a pause, or whether it is used. It takes
// milliseconds, and seconds on a busy host.
const telling = 10 * time.Second

// tellInit sends a request without a body to a box's init, and waits until it has
// been carried out.
func (k *keeper) tellInit(id string, t wire.Type) error {
	conn, err := k.dialInit(id)
	if err != nil {
		return fault.Wrap(fault.Engine, err, "reach the init of the box")
	}
	defer conn.Close()
	if err := conn.SetTimeout(telling); err != nil {
		return err
	}
	if err := conn.Send(t, nil); err != nil {
		return fault.Wrap(fault.Engine, err, "the init of the box does not answer")
	}
	f, err := conn.Recv()
	f.CloseFDs()
	if err == nil && f.Type != wire.TypeReady {
		err = wire.ErrProtocol // as of an init that was made before there were pauses
	}
	return fault.Wrap(fault.Engine, err, "tell the init of the box")
}
