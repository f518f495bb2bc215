package spool

import (
	"context"
	"sync"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// Exec is a command whose output is spooled. It may be running, or known only
// from its record. It is safe for concurrent use.
type Exec struct {
	s       *Store
	id, box string     // of the record
	command *core.Exec // nil if it does not run

	poll *poller       // the pump's poller, to wake it
	room chan struct{} // makes a waiting pump check for room again

	open bool          // clients provide the input
	turn chan struct{} // full while WriteStdin or CloseStdin has its turn
	pen  chan struct{} // full while Feed, or a piece of WriteStdin, is written

	writing  sync.Mutex // held while the record is written to disk, and before mu
	mu       sync.Mutex
	rec      api.Exec
	out      output
	ended    bool      // the record is final; nothing comes any more
	lost     bool      // the disk stayed full to the end: some output could not be kept
	stop     bool      // the store closes: the command continues without this process
	owner    *Attached // the client that a terminal was opened for, while it is there
	other    *Attached // the client of Attach, while it is there
	left     mark      // what the last client that left had been sent
	readers  map[*reader]struct{}
	changed  chan struct{} // closed at the next change; nil if nobody waits for one
	followed bool          // the store's watcher tells of changes that another process makes
	again    bool          // a timer tries once more to read these
	full     bool          // the pump waits until a reader has read on
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

// Wait waits for the end of the exec, that is, until its record is final.
// Errors: those of ctx.
func (e *Exec) Wait(ctx context.Context) error {
	if e.s.reads { // only readers are told of what another process writes
		r := &reader{e: e, weak: true}
		if err := e.join(r); err != nil {
			return err
		}
		defer r.leave()
	}
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

// Cancel ends the command with all its descendants: it sends SIGTERM, and
// SIGKILL after grace. Errors: InvalidState if the exec has ended.
func (e *Exec) Cancel(ctx context.Context, grace time.Duration) error {
	command, err := e.running()
	if err != nil {
		return err
	}
	return command.Cancel(ctx, grace)
}

// HangUp tells the command and all its descendants that their terminal has gone: it
// sends SIGHUP, and SIGKILL after grace. Errors: InvalidState if the exec has ended.
func (e *Exec) HangUp(ctx context.Context, grace time.Duration) error {
	command, err := e.running()
	if err != nil {
		return err
	}
	return command.HangUp(ctx, grace)
}

// running returns the command while it runs.
func (e *Exec) running() (*core.Exec, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.s.reads && !e.ended {
		return nil, fault.New(fault.InvalidState, "exec %s is its box's main command and takes no input: signal or cancel it by requests", e.id)
	}
	if e.ended || e.command == nil {
		return nil, fault.New(fault.InvalidState, "exec %s has ended: it is %s", e.id, e.rec.Status)
	}
	return e.command, nil
}

// change returns a channel that is closed at the next change. The caller holds
// mu.
func (e *Exec) change() <-chan struct{} {
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// publish wakes everyone who waits for a change. The caller holds mu.
func (e *Exec) publish() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// end makes the end known. It is written to disk first, so that no reader sees
// an end that is forgotten in a restart. If it can't be written, it is
// published from memory all the same, and err says why it failed: see
// [Exec.insist].
func (e *Exec) end(end api.ExitStatus) (err error) {
	e.mu.Lock()
	rec := counted(e.rec.Ended(end), e.out.sizes)
	e.mu.Unlock()
	if err = e.write(rec); err != nil {
		e.s.log.Error("the end of an exec can't be recorded yet", "exec_id", rec.ID, "box_id", rec.BoxID, "error", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rec, e.ended, e.command = rec, true, nil
	e.publish()
	return err
}

// write writes the record to disk, unless the box was removed.
func (e *Exec) write(rec api.Exec) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	removed, lost := e.out.removed, e.lost
	e.mu.Unlock()
	if removed {
		return nil
	}
	return e.s.records(rec.BoxID).Put(rec.ID, written{rec, lost}, false)
}

// insist tries to write the end of an exec until it is on disk or the store
// closes. Meanwhile the exec counts as running, so that it is found in memory.
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

// storage wraps an error of an exec's files.
func (e *Exec) storage(err error) error {
	return fault.Disk(err, "read or write the output of exec %s", e.id)
}
