package boxlog

import (
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/logs/ingest"
)

// state is the last known state of a box.
type state struct {
	name  string
	state api.BoxStatus
}

// Severities of rows about boxes, as OpenTelemetry numbers them.
const (
	info   = 9
	warned = 13
	failed = 17
)

var severities = map[uint8]string{info: "INFO", warned: "WARN", failed: "ERROR"}

// Boxes writes what has changed since its last call. recs are the records of
// all boxes that there are. The first call writes nothing of them but what becomes of main
// commands, which goes on where the last daemon has stopped. Boxes does not wait:
// rows for which there is no room are dropped, and that is written to the
// server's log.
func (r *Recorder) Boxes(recs []core.Record) {
	now := map[string]state{}
	var rows []ingest.Row
	r.mu.Lock()
	for _, rec := range recs {
		now[rec.ID] = state{rec.Options.Name, rec.Status}
		r.serve(rec)
		if before, known := r.states[rec.ID]; !known || before.state != rec.Status {
			rows = append(rows, changed(rec))
		}
	}
	for id, before := range r.states {
		if _, still := now[id]; !still {
			rows = append(rows, event(row(id, before.name, time.Now()), "removed", info))
		}
	}
	first, closed := r.states == nil, r.closed
	if first {
		r.sweep(now)
	}
	r.unserve(now)
	r.states = now
	if !first && !closed && len(rows) > 0 {
		r.addEvents(rows)
	}
	r.mu.Unlock()
}

// addEvents has rows about boxes stored with what is stored next. The caller
// holds mu, because Close closes the channel after it.
func (r *Recorder) addEvents(rows []ingest.Row) {
	if len(r.events)+len(rows) > maxEvents {
		r.Log.Warn("events of boxes were left out: too many rows wait for the log engine", "rows", len(rows))
		return
	}
	r.events = append(r.events, rows...)
	select {
	case r.chunks <- nil: // has them stored
	default: // what fills the channel does
	}
}

// changed returns the row for a box whose state has changed.
func changed(rec core.Record) ingest.Row {
	severity := uint8(info)
	if rec.Status == api.Failed {
		severity = failed
	}
	one := event(row(rec.ID, rec.Options.Name, rec.UpdatedAt), string(rec.Status), severity)
	if rec.Error != nil {
		one.Body += ": " + rec.Error.Message
	}
	return one
}

// event completes a row that says what has happened to a box.
func event(one ingest.Row, what string, severity uint8) ingest.Row {
	one.Body, one.EventName, one.Severity = "box "+what, "box."+what, severity
	one.SeverityText = severities[severity]
	return one
}
