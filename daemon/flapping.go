package daemon

import (
	"time"

	"sandbox/core"
)

// A main command flaps when it was started again so often, and on average within
// flapsEach, which is the longest back-off and the time that a run takes to count as
// one that works.
const (
	flapsFrom = 10
	flapsEach = 70 * time.Second
)

// flapping finds the boxes whose main command ends again and again, each once until it
// has run for long. Only one goroutine may use it.
type flapping map[string]flaps

// flaps is what is known of one box.
type flaps struct {
	started  time.Time // the box
	restarts int       // that the command had
	since    time.Time // when it had them
	told     bool
}

// look returns those of all boxes whose command flaps since the last call.
func (f flapping) look(recs []core.Record, now time.Time) (found []core.Record) {
	there := map[string]bool{}
	for _, rec := range recs {
		if rec.Command == nil || rec.StartedAt == nil {
			continue
		}
		there[rec.ID] = true
		one, known := f[rec.ID]
		if !known || !one.started.Equal(*rec.StartedAt) {
			one = flaps{started: *rec.StartedAt, since: *rec.StartedAt}
		}
		n := rec.Command.Restarts - one.restarts
		if now.Sub(one.since) >= time.Duration(n+1)*flapsEach { // it has run for long
			one = flaps{started: one.started, restarts: rec.Command.Restarts, since: now}
		} else if n >= flapsFrom && !one.told {
			one.told = true
			found = append(found, rec)
		}
		f[rec.ID] = one
	}
	for id := range f {
		if !there[id] {
			delete(f, id)
		}
	}
	return found
}

// nameFlapping logs the boxes whose main command flaps.
func (d *Daemon) nameFlapping(recs []core.Record) {
	for _, rec := range d.flapping.look(recs, time.Now()) {
		d.Log.Warn("the main command of a box ends again and again: see what it prints with 'sandbox logs'",
			"box_id", rec.ID, "box", rec.Options.Name, "restarts", rec.Command.Restarts, "exit_code", rec.Command.ExitCode)
	}
}
