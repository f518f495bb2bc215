package shim

import (
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/fault"
	"sandbox/core/ids"
)

// create makes a box and starts it, unless left says that the client which
// requested the box has hung up. If the box exists already, create returns it.
func (k *keeper) create(req core.CreateRequest, owner process.Identity, left func() bool) (core.Record, error) {
	if !ids.Box.Valid(req.ID) {
		return core.Record{}, fault.New(fault.Engine, "%q is not a box id", req.ID)
	}
	if len(req.Image.Layers) == 0 {
		return core.Record{}, fault.New(fault.Image, "image %q has no layers: import it again", req.Options.Image)
	}
	if err := errors.Join(checkEnforced(req.Options), checkUser(req.Options)); err != nil {
		return core.Record{}, err
	}
	if err := k.checkRootfs(req.Options); err != nil {
		return core.Record{}, err
	}
	if err := k.checkVolumes(req.Options.Volumes); err != nil {
		return core.Record{}, err
	}
	for {
		if rec, err := k.again(req.ID); err != nil || rec.ID != "" {
			return rec, err
		}
		b, err := k.reserve(req, owner)
		if err != nil {
			return core.Record{}, err
		}
		if b != nil {
			return k.complete(b, left)
		}
	}
}

// complete starts a box that reserve has made, and unlocks it.
func (k *keeper) complete(b *box, left func() bool) (core.Record, error) {
	defer b.change.Unlock()
	// A client that has left may have requested the box's removal before
	// reserve, and got the answer that there is no such box. A removal that
	// is requested from here on waits until we release b.change.
	if left() {
		return core.Record{}, errors.Join(fault.New(fault.Canceled, "the client that asked for the box has disconnected"), k.undo(b))
	}
	if err := k.bringUp(b); err != nil {
		return core.Record{}, errors.Join(err, k.undo(b))
	}
	rec := b.record()
	if rec.Owner.PID != 0 {
		k.watchOwner(rec.Owner)
	}
	return rec.Record, nil
}

// undo removes a box that could not be brought up. What can't be removed for lack
// of descriptors is removed once there are some again. The caller holds b.change.
func (k *keeper) undo(b *box) error {
	if b.spare != nil {
		k.discard(b.spare)
	}
	id, slot := b.rec.ID, b.rec.Slot()
	err := k.forget(b)
	if _, unclean := k.launcher.unclean.Load(slot); unclean || fault.Short(err) {
		k.idle.enter()
		go func() {
			defer k.idle.leave()
			k.insist(id, slot, func() error {
				_, err := k.again(id) // leaves the box alone if its create was repeated and worked
				return err
			})
		}()
	}
	return err
}

// insist calls remove, which removes a box that nobody asks for any more, until
// nothing fails for lack of descriptors and nothing is left in the box's slot. It
// waits a second before each further try: the kernel does not tell anybody when a
// descriptor is free again.
func (k *keeper) insist(id, slot string, remove func() error) {
	for try := 1; ; try++ {
		err := remove()
		gone := err == nil || fault.Is(err, fault.BoxNotFound)
		if !gone && (try == 1 || !fault.Short(err)) {
			k.log.Error("remove a box that nobody owns", "box", id, "error", err)
		}
		if gone && k.clean(slot) || !gone && !fault.Short(err) {
			return
		}
		time.Sleep(time.Second)
	}
}

// clean reports whether nothing is left in the slot of a box that was removed. What
// a clean that failed has left, it tries to remove again.
func (k *keeper) clean(slot string) bool {
	if _, left := k.launcher.unclean.Load(slot); !left {
		return true
	}
	k.sweepGroups()
	_, left := k.launcher.unclean.Load(slot)
	return !left
}

// again returns the box with this id, in whatever state, if it was requested
// before: the shim or the client may have died before the answer. It waits for
// the create that makes the box, and removes what a failed create could not
// take away. It returns an empty record where create has to make the box.
func (k *keeper) again(id string) (core.Record, error) {
	b, err := k.lock(id)
	if err != nil {
		return core.Record{}, nil // there is no such box, which is the usual case
	}
	defer b.change.Unlock()
	if rec := b.record().Record; rec.Status != api.Created {
		return rec, nil
	}
	return core.Record{}, k.forget(b)
}

// reserve makes a box with a name and a range of ids of its own. It takes a spare
// for it if there is one, and else writes its record: until a spare has become the
// box, its state directory stands for it. It returns the box with b.change
// locked; the caller unlocks it. It returns nil if another create has made a box
// with this id meanwhile.
func (k *keeper) reserve(req core.CreateRequest, owner process.Identity) (*box, error) {
	now := time.Now().UTC()
	b := &box{rec: record.Box{
		Record: core.Record{ID: req.ID, Options: req.Options, ImageID: req.Image.ID, Status: api.Created, CreatedAt: now, UpdatedAt: now},
		Image:  req.Image, Owner: owner,
	}}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.boxes[req.ID] != nil {
		return nil, nil
	}
	if err := k.checkName(req.Options.Name); err != nil {
		return nil, err
	}
	if b.spare = k.pool.take(req); b.spare != nil {
		b.rec.UIDBase, b.rec.Spare = b.spare.base, b.spare.slot
	} else if err := k.record(b); err != nil {
		return nil, err
	}
	b.change.Lock()
	k.boxes[b.rec.ID] = b
	return b, nil
}

// record gives a box a range of ids and writes its record. k.mu is held.
func (k *keeper) record(b *box) (err error) {
	if b.rec.UIDBase, err = k.freeRange(); err != nil {
		return err
	}
	return k.records.Put(b.rec.ID, b.rec, false)
}

// checkName refuses the name of another box. k.mu is held.
func (k *keeper) checkName(name string) error {
	for _, other := range k.boxes {
		if name != "" && other.record().Options.Name == name {
			return fault.New(fault.AlreadyExists, "a box named %q exists", name)
		}
	}
	return nil
}

// freeRange returns the first id of a range that no box and no spare has. k.mu is
// held.
func (k *keeper) freeRange() (int, error) {
	used := make(map[int]bool, len(k.boxes))
	for _, b := range k.boxes {
		used[b.record().UIDBase] = true
	}
	for _, s := range k.pool.all() {
		used[s.base] = true
	}
	if len(used) >= core.MaxBoxes {
		return 0, fault.New(fault.ResourceExhausted, "the home has %d boxes, which is the most: remove some", core.MaxBoxes)
	}
	if asUser {
		return 0, nil // there is one range, which all boxes have
	}
	// The range is random, so that homes, which know nothing of each other's
	// boxes, rarely use the same one.
	n := rand.IntN(core.MaxBoxes)
	for used[firstID+n*idsPerBox] {
		n = (n + 1) % core.MaxBoxes
	}
	return firstID + n*idsPerBox, nil
}

// raise makes the life of a box: of the spare that was taken for it, or else from
// nothing. The caller holds b.change.
func (k *keeper) raise(b *box, rec *record.Box) (*life, error) {
	s := b.spare
	if s == nil {
		return k.launcher.launch(*rec)
	}
	b.spare = nil
	f, err := k.claim(s, *rec)
	if err == nil {
		return f, nil
	}
	k.log.Warn("a spare could not become a box, which is made from nothing", "box", rec.ID, "slot", s.slot, "error", err)
	rec.Spare = ""
	b.set(*rec)
	if err := errors.Join(os.RemoveAll(record.Dir(k.home, rec.ID)), k.records.Put(rec.ID, *rec, false)); err != nil {
		return nil, err
	}
	return k.launcher.launch(*rec)
}
