package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// Boxes is what the store needs to know about boxes when it takes over the
// execs of an earlier process.
type Boxes interface {
	// Attach opens the descriptors of a running exec again, whose output up to have
	// is in the store. Errors: BoxNotFound, ExecNotFound, InvalidState (the box does
	// not run).
	Attach(ctx context.Context, box, exec string, have core.Position) (*core.Exec, error)
	// Status returns the status of a box. Errors: BoxNotFound.
	Status(ctx context.Context, box string) (api.BoxStatus, error)
	// Exec returns what the box's init knows about an exec. Errors: those
	// of Attach.
	Exec(ctx context.Context, box, exec string) (api.Exec, error)
}

// Adopt takes over the execs that were running when the last process that had
// the store open ended, however it ended. It continues to read their output, or
// finds out how they ended. It is called once, after [Store.Sweep] and before
// [Store.Start]. An exec that can't be taken over is logged and does not
// prevent the others from being taken over. Errors: Storage; ResourceExhausted and
// those of ctx, because an exec that can't be reached for want of descriptors, or of
// time, may well run, and to go on would be to take it for lost.
func (s *Store) Adopt(ctx context.Context, boxes Boxes) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Disk(err, "read the directory of outputs")
	}
	for _, entry := range entries {
		if err := s.AdoptBox(ctx, boxes, entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

// AdoptBox does for the execs of one box what Adopt does for those of all. Errors:
// ResourceExhausted; those of ctx.
func (s *Store) AdoptBox(ctx context.Context, boxes Boxes, box string) error {
	if err := s.records(box).Sweep(); err != nil {
		s.log.Warn("files of removed records can't be removed", "box_id", box, "error", err)
	}
	recs, err := s.load(box)
	for _, rec := range recs {
		if rec.Status == api.ExecRunning && err == nil {
			err = s.adopt(ctx, boxes, rec)
		}
	}
	if fault.Is(err, fault.ResourceExhausted) || err != nil && ctx.Err() != nil {
		return fmt.Errorf("take over the execs of box %s: %w", box, err)
	}
	return nil
}

// Sweep removes the spools of boxes that do not exist any more.
func (s *Store) Sweep(ctx context.Context, boxes Boxes) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Disk(err, "read the directory of outputs")
	}
	for _, entry := range entries {
		if _, err := boxes.Status(ctx, entry.Name()); fault.Is(err, fault.BoxNotFound) {
			s.Remove(entry.Name())
		}
	}
	return nil
}

// adopt takes over one exec. It mends the exec's files first: output behind the
// last mark was spooled, but no reader was told of it. Errors: ResourceExhausted and
// those of ctx, with which nothing was done.
func (s *Store) adopt(ctx context.Context, boxes Boxes, rec written) error {
	e := s.exec(rec)
	err := e.mend()
	if err == nil {
		e.command, err = boxes.Attach(ctx, rec.BoxID, rec.ID, e.spooled())
	}
	if err == nil {
		e.open = e.command.Stdin() != nil
		if err = s.begin(e); err != nil {
			_ = e.command.Detach()
		}
	}
	if err == nil || fault.Is(err, fault.ResourceExhausted) {
		return err
	}
	end, seen := endUnseen(ctx, boxes, rec.BoxID, rec.ID)
	if ctx.Err() != nil { // the box was not asked to the end
		return fault.Of(ctx.Err())
	}
	s.log.Info("an exec can't be adopted", "exec_id", rec.ID, "box_id", rec.BoxID, "error", err)
	e.lost = e.lost || seen
	if err := e.end(end); err != nil {
		s.keep(e)
	}
	return nil
}

// keep holds an exec in memory until its end can be written, or the store closes.
func (s *Store) keep(e *Exec) {
	if !s.enter(e) {
		return
	}
	go func() {
		defer s.pumps.Done()
		e.insist()
		s.mu.Lock()
		delete(s.live, e.id)
		s.mu.Unlock()
	}()
}

// endUnseen returns the end of an exec that ended without being recorded. The
// box's init may know it, and seen is true then: another reader has had the rest of the
// output. If init does not know it, nobody saw the end: the exec ended with its box, or
// with its init.
func endUnseen(ctx context.Context, boxes Boxes, box, id string) (end api.ExitStatus, seen bool) {
	known, err := boxes.Exec(ctx, box, id)
	if err == nil && known.FinishedAt != nil && known.ExitCode != nil {
		return known.Exit(), true
	}
	look := boxes.Status
	if fault.Is(err, fault.InvalidState) { // the box ends, and its record will say how
		look = func(ctx context.Context, box string) (api.BoxStatus, error) { return settled(ctx, boxes, box) }
	}
	if status, err := look(ctx, box); err == nil && status == api.Stopped {
		return api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonBoxStopped, ExitCode: 128 + 9, Signal: 9, FinishedAt: time.Now()}, false
	}
	return api.ExitStatus{Status: api.ExecLost, FinishedAt: time.Now()}, false
}

// settling bounds how long the end of a box takes to be noted: its shim may have
// to be started for that.
const settling = 10 * time.Second

// settled returns the status of a box once it no longer runs. Nothing tells this
// process of the record, so it is read again and again.
func settled(ctx context.Context, boxes Boxes, box string) (api.BoxStatus, error) {
	for deadline := time.Now().Add(settling); ; time.Sleep(10 * time.Millisecond) {
		status, err := boxes.Status(ctx, box)
		if err != nil || !status.Up() || ctx.Err() != nil || time.Now().After(deadline) {
			return status, err
		}
	}
}

// spooled returns how much of the output is in the files.
func (e *Exec) spooled() core.Position {
	e.mu.Lock()
	defer e.mu.Unlock()
	return core.Position{Stdout: e.out.sizes[Stdout], Stderr: e.out.sizes[Stderr]}
}

// mend indexes the output that a killed process had spooled but not indexed.
func (e *Exec) mend() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.out.hold(); err != nil {
		return e.storage(err)
	}
	defer e.out.release()
	if err := e.out.index.check(e.out.sizes); err != nil {
		return e.storage(err)
	}
	for _, stream := range []Stream{Stdout, Stderr} {
		if err := e.out.addEvents(stream, false); err != nil {
			return e.storage(err)
		}
	}
	return nil
}

// Remove removes all execs of a box that does not exist any more. This ends
// those that still run, and their readers are told.
func (s *Store) Remove(box string) {
	s.mu.Lock()
	delete(s.known, box)
	for _, e := range s.live {
		if e.Record().BoxID == box {
			e.abandon()
		}
	}
	s.mu.Unlock()
	if err := os.RemoveAll(filepath.Join(s.dir, filepath.Base(box))); err != nil {
		s.log.Warn("output can't be removed", "box_id", box, "error", err)
	}
}

// abandon notes that the box was removed: nothing is written to disk any more. It
// waits for what is being written, which would make the removed directory again.
func (e *Exec) abandon() {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out.removed = true
	e.nudge()
}

// Close stops the reading of output. Commands continue: what they write waits
// in their pipes for the next process that opens the store. So does that of a command
// that is started meanwhile.
func (s *Store) Close() {
	s.mu.Lock()
	s.closing = true
	for _, e := range s.live {
		e.halt()
	}
	s.mu.Unlock()
	s.pumps.Wait()
}

func (e *Exec) halt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stop = true
	e.nudge()
	if e.poll != nil { // nil if only the end of the exec is still to be written
		e.poll.until(time.Unix(0, 1)) // a time long past wakes the pump at once
	}
}
