// Package record defines the record that the engine keeps of each box on disk.
// The shim of the home writes it, before it creates each kernel object; all
// processes that use the home read it.
package record

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/process"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/core/store"
)

// Box is the record of one box.
type Box struct {
	core.Record
	Image core.Image `json:"image"`
	// Taken are the directories of the layers that were made of the box's disk while it
	// was stopped, lowest first. They lie between its image and its writable layer.
	Taken []string `json:"taken,omitempty"`
	// Merged is the directory of a layer that is about to take the place of some of Taken.
	Merged  string `json:"merged,omitempty"`
	UIDBase int    `json:"uid_base"` // the first of the box's 65,536 ids on the host
	// Etc are the digests of the files that were written into the box's /etc when it was
	// started last, or, of those that only its first start writes, then.
	Etc map[string]string `json:"etc,omitempty"`
	// Returning are the directories that Taken will hold when a rollback of the box is
	// done; nil for no rollback.
	Returning *[]string        `json:"returning,omitempty"`
	Init      process.Identity `json:"init"`           // the box's init, while it runs
	Link      string           `json:"link,omitempty"` // the host's end of the box's network link, while it runs
	Owner     process.Identity `json:"owner"`          // the process with which the box ends; zero for none
	// Spare is the spare that the box was made of, while it runs; "" for none.
	Spare string `json:"spare,omitempty"`
	// Stopping says that a stop was requested. From then on, whatever ends init,
	// the box counts as stopped and not as failed.
	Stopping bool `json:"stopping,omitempty"`
	// Pausing says that the box is about to be paused. Unless the status says that
	// it is, it goes on.
	Pausing bool `json:"pausing,omitempty"`
	// Expired says that the box is stopped, or was, since its time had come.
	Expired bool `json:"expired,omitempty"`
	// Idle says that its time had come since nobody had used it.
	Idle bool `json:"idle,omitempty"`
	// Removing says that the box is being removed, so that a part of its disk may be gone.
	Removing bool `json:"removing,omitempty"`
	// Completed says that the box is stopped, or was, since its main command had ended.
	Completed bool `json:"completed,omitempty"`
}

// Open returns the directory of a home's records.
func Open(home string) store.Dir[Box] { return store.Dir[Box]{Path: filepath.Join(home, "records")} }

// OfDamaged returns the record that is shown for a box whose record is damaged.
// It says that the box has failed, and why; nothing else is known of the box.
func OfDamaged(d store.Damaged) Box {
	at := d.At.UTC()
	b := Box{Record: core.Record{ID: d.Key, CreatedAt: at}}
	b.Fail("record_damaged", d.Err)
	b.StoppedAt, b.UpdatedAt = &at, at
	return b
}

// Slot returns the name that the box's cgroups and libcontainer's state of it have
// while it runs: that of the spare it was made of, or else its id.
func (b Box) Slot() string { return cmp.Or(b.Spare, b.ID) }

// Layers returns the directories of the layers below the writable one, lowest first.
func (b Box) Layers() []string { return slices.Concat(b.Image.Layers, b.Taken) }

// Dir returns the directory of a box's files.
func Dir(home, id string) string { return filepath.Join(home, "boxes", id) }

// Correct corrects the record of a box that ended while no shim watched it, as
// after a reboot or when the shim was killed too. It tells whether the record
// was wrong.
func (b *Box) Correct() bool {
	if !b.Status.Up() || !b.Init.Ended() {
		return false
	}
	b.InitEnded("the box's init ended while no shim watched it (a reboot, or init was killed)")
	return true
}

// InitEnded records the end of the box's init. The box becomes stopped if a stop
// was requested; otherwise it has failed, and why is the message.
func (b *Box) InitEnded(why string) {
	if b.Stopping {
		reason := string(api.Stopped)
		switch {
		case b.Expired:
			reason = b.why()
		case b.Completed:
			reason = "command_ended"
		}
		b.Ended(api.Stopped, reason)
		return
	}
	b.Fail("init_died", fault.New(fault.Engine, "%s", why))
}

// Fail records that the box has failed, the reason, and the failure.
func (b *Box) Fail(reason string, err error) {
	f := fault.Of(err)
	b.Ended(api.Failed, reason)
	b.Error = &api.Failure{Code: f.Kind, Message: f.Message}
}

// Ended puts the box into a state in which it has no processes.
func (b *Box) Ended(s api.BoxStatus, reason string) {
	now := time.Now().UTC()
	b.Status, b.Reason, b.PID, b.Init, b.Link, b.Spare, b.Stopping, b.Pausing = s, reason, 0, process.Identity{}, "", "", false, false
	b.StoppedAt, b.PausedAt, b.ExpiresAt, b.UpdatedAt = &now, nil, nil, now
	b.Health = nil
	if b.Command != nil && b.Command.Status != api.CommandEnded {
		ended := *b.Command
		ended.Status = api.CommandEnded
		b.Command = &ended
	}
}

// Began puts the box into the state running.
func (b *Box) Began(init process.Identity) {
	now := time.Now().UTC()
	b.Status, b.Reason, b.Error, b.PID, b.Init = api.Running, "", nil, init.PID, init
	b.StartedAt, b.StoppedAt, b.UpdatedAt = &now, nil, now
	b.Expired, b.Idle, b.Completed = false, false, false
	b.Command, b.Health = nil, nil
	b.setTime(now)
}

// Paused puts a running box into the state paused. One that is paused stays as it is.
func (b *Box) Paused() {
	if b.Status == api.Paused {
		return
	}
	now := time.Now().UTC()
	b.Status, b.Pausing, b.PausedAt, b.UpdatedAt = api.Paused, false, &now, now
}

// Resumed puts a paused box into the state running.
func (b *Box) Resumed() {
	now := time.Now().UTC()
	if b.Status == api.Paused {
		b.Reason, b.Idle = "", false
		b.setTime(now)
	}
	b.Status, b.Pausing, b.PausedAt, b.UpdatedAt = api.Running, false, nil, now
}

// why returns the reason of a box that has ended by itself.
func (b *Box) why() string {
	if b.Idle {
		return "idle"
	}
	return "expired"
}

// setTime has the time of the box begin.
func (b *Box) setTime(now time.Time) {
	b.ExpiresAt = nil
	if b.Options.TTLSeconds > 0 {
		at := now.Add(time.Duration(b.Options.TTLSeconds) * time.Second)
		b.ExpiresAt = &at
	}
}

// Due reports whether the time of the box has come.
func (b Box) Due(now time.Time) bool {
	return b.Status.Up() && b.ExpiresAt != nil && !now.Before(*b.ExpiresAt)
}

// PausedByTime says that the box was paused since its time had come. It has none until
// it is resumed.
func (b *Box) PausedByTime() {
	b.Paused()
	b.Idle = false
	b.Reason, b.ExpiresAt, b.UpdatedAt = b.why(), nil, time.Now().UTC()
}

// PausedByIdleness says that the box was paused since nobody had used it. What is left
// of its time goes on.
func (b *Box) PausedByIdleness() {
	b.Paused()
	b.Idle = true
	b.Reason, b.UpdatedAt = b.why(), time.Now().UTC()
}

// TakeBack forgets what a box that is up was about to be stopped for, unless it was told to
// stop: its rollback, the end of its time or of its main command. That need not
// hold any more when the box ends. TakeBack reports whether there was any of these.
func (b *Box) TakeBack() bool {
	if !b.Status.Up() || b.Stopping || b.Returning == nil && !b.Expired && !b.Completed {
		return false
	}
	b.Idle = b.Idle && !b.Expired // a box that is paused may be idle, too
	b.Returning, b.Expired, b.Completed = nil, false, false
	return true
}

// Passes reports whether nothing is kept of the box once it has ended. A rollback ends it
// only to start it again.
func (b Box) Passes() bool {
	return b.Returning == nil && (b.Options.AutoRemove || b.Expired && b.Options.OnExpiry == options.ExpiryRemove)
}

// Update changes options of the box. A time that was changed begins now.
func (b *Box) Update(u options.Update) {
	now := time.Now().UTC()
	b.Options = u.Apply(b.Options)
	if u.TTLSeconds != nil && b.Status.Up() {
		b.setTime(now)
	}
	b.UpdatedAt = now
}

// OverSince tells whether the box stopped or failed no later than t.
func (b Box) OverSince(t time.Time) bool {
	over := b.Status == api.Stopped || b.Status == api.Failed
	return over && (b.StoppedAt == nil || !b.StoppedAt.After(t))
}
