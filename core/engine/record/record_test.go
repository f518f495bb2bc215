package record

import (
	"testing"

	"sandbox/api"
)

// TestTakeBack forgets why a box was to be stopped, unless the stop was begun.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	noted := func(status api.BoxStatus, change func(*Box)) Box {
		b := Box{Returning: &[]string{}, Expired: true, Idle: true, Completed: true}
		b.Status = status
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		box        Box
		taken      bool
		idle, kept bool // Idle, and the others, behind it
	}{
		"of a box that runs":      {noted(api.Running, func(*Box) {}), true, false, false},
		"of one that is paused":   {noted(api.Paused, func(*Box) {}), true, false, false},
		"of one paused as idle":   {noted(api.Paused, func(b *Box) { b.Expired = false }), true, true, false},
		"of one told to stop":     {noted(api.Running, func(b *Box) { b.Stopping = true }), false, true, true},
		"of one that has stopped": {noted(api.Stopped, func(*Box) {}), false, true, true},
		"where nothing was noted": {noted(api.Paused, func(b *Box) { b.Returning, b.Expired, b.Completed = nil, false, false }), false, true, false},
		"of a rollback alone":     {noted(api.Running, func(b *Box) { b.Expired, b.Completed = false, false }), true, true, false},
		"of the end of a command": {noted(api.Running, func(b *Box) { b.Returning, b.Expired = nil, false }), true, true, false},
		"of the end of a time":    {noted(api.Running, func(b *Box) { b.Returning, b.Completed = nil, false }), true, false, false},
	} {
		b := c.box
		taken := b.TakeBack()
		if kept := b.Returning != nil && b.Expired && b.Completed; taken != c.taken || b.Idle != c.idle || kept != c.kept {
			t.Errorf("%s: taken back %v, and then %+v", name, taken, b)
		}
		if some := b.Returning != nil || b.Expired || b.Completed; some != c.kept {
			t.Errorf("%s: a part was kept: %+v", name, b)
		}
	}
}
