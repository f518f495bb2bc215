package spool

import (
	"context"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// Exec is a command whose output is spooled: one that runs, or one that is
// known from its record. It is safe for concurrent use.
type Exec struct {
	s       *Store
	command *core.Exec // nil when it does not run

	poll *poller       // the pump's, to wake it
	room chan struct{} // tells the resting pump to look again

	open bool // its input is for who attaches

	mu       sync.Mutex
	rec      api.Exec
	out      output
	ended    bool // the record is the last one; nothing comes any more
	lost     bool // the disk was full to the end: output could not be kept
	removed  bool // the box has gone: nothing is written down any more
	stop     bool // the store closes: the command goes on without us
	attached bool
	readers  map[*reader]struct{}
	changed  chan struct{} // closed at the next change, when somebody waits for it
	full     bool          // the pump rests until a reader goes on
}

// Record returns what is known of the exec now.
func (e *Exec) Record() api.Exec {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return e.rec
	}
	return counted(e.rec, e.out.sizes)
}

// Wait waits for the end of the exec, which is when its record is final.
// Errors: ctx's.
func (e *Exec) Wait(ctx context.Context) error {
	for {
		e.mu.Lock()
		ended, changed := e.ended, e.change()
		e.mu.Unlock()
		if ended {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fault.Of(ctx.Err())
		}
	}
}

// Cancel ends the command's whole tree: SIGTERM, SIGKILL after grace. Errors:
// InvalidState when it has ended.
func (e *Exec) Cancel(ctx context.Context, grace time.Duration) error {
	command, err := e.running()
	if err != nil {
		return err
	}
	return command.Cancel(ctx, grace)
}

// running returns the command while it runs.
func (e *Exec) running() (*core.Exec, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.command == nil {
		return nil, fault.New(fault.InvalidState, "exec %s has ended: it is %s", e.rec.ID, e.rec.Status)
	}
	return e.command, nil
}

// change returns a channel that is closed at the next change. The caller holds mu.
func (e *Exec) change() <-chan struct{} {
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// publish wakes whoever waits for a change. The caller holds mu.
func (e *Exec) publish() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// end makes the end known: on disk first, so that no reader has seen an end
// that a restart forgets. Where it can't be written, it is known from memory
// all the same, and err says why: see [Exec.insist].
func (e *Exec) end(end api.ExitStatus) (err error) {
	e.mu.Lock()
	rec := counted(e.rec.Ended(end), e.out.sizes)
	e.mu.Unlock()
	if err = e.write(rec); err != nil {
		e.s.log.Error("the end of an exec can't be written down yet", "exec_id", rec.ID, "box_id", rec.BoxID, "error", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rec, e.ended, e.command = rec, true, nil
	e.publish()
	return err
}

// write puts the record on disk, unless its box has gone.
func (e *Exec) write(rec api.Exec) error {
	e.mu.Lock()
	removed, lost := e.removed, e.lost
	e.mu.Unlock()
	if removed {
		return nil
	}
	return e.s.records(rec.BoxID).Put(rec.ID, written{rec, lost}, false)
}

// insist writes the end of an exec until it is on disk, or the store closes.
// Meanwhile the exec counts as one that runs, so that it is found in memory.
func (e *Exec) insist() {
	for !e.stopping() {
		e.rest(pause)
		if e.write(e.Record()) == nil {
			return
		}
	}
}

// abandon ends a command that nobody can follow.
func abandon(command *core.Exec) {
	_ = command.Cancel(context.Background(), 0)
	_ = command.Close()
}

// storage says what went wrong with an exec's files.
func (e *Exec) storage(err error) error {
	return fault.Disk(err, "the output of exec %s", e.rec.ID)
}
