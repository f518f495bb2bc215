package spool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/store"
)

// Boxes is what the store asks about boxes when it takes up what another
// process has left.
type Boxes interface {
	// Attach takes the descriptors of a running exec again. Errors:
	// BoxNotFound, ExecNotFound, InvalidState (the box does not run).
	Attach(ctx context.Context, box, exec string) (*core.Exec, error)
	// Status tells how a box stands. Errors: BoxNotFound.
	Status(ctx context.Context, box string) (api.BoxStatus, error)
}

// Adopt takes up the execs that ran when the last process that had the store
// open ended, however it ended: their output goes on, or their end is found
// out. It is called once, after [Store.Sweep] and before Start. What can't be taken up is logged and hides no other.
func (s *Store) Adopt(ctx context.Context, boxes Boxes) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Disk(err, "read the directory of outputs")
	}
	for _, entry := range entries {
		box := entry.Name()
		if err := s.records(box).Sweep(); err != nil {
			s.log.Warn("leftovers of records can't be removed", "box_id", box, "error", err)
		}
		recs, damaged, err := s.records(box).List()
		if err = errors.Join(err, store.Errors(damaged)); err != nil {
			s.log.Warn("records of execs can't be read", "box_id", box, "error", err)
		}
		for _, rec := range recs {
			if rec.Status == api.ExecRunning {
				s.adopt(ctx, boxes, rec)
			}
		}
	}
	return nil
}

// Sweep removes the spools of boxes that are no more.
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

// adopt takes up one exec. Its files come first: what stands behind the last
// mark was spooled and told to nobody.
func (s *Store) adopt(ctx context.Context, boxes Boxes, rec written) {
	e := s.exec(rec)
	err := e.mend()
	if err == nil {
		e.command, err = boxes.Attach(ctx, rec.BoxID, rec.ID)
	}
	if err == nil {
		e.open = e.command.Stdin() != nil
		if err = s.begin(e); err != nil {
			_ = e.command.Detach()
		}
	}
	if err != nil {
		s.log.Info("an exec can't be taken up", "exec_id", rec.ID, "box_id", rec.BoxID, "error", err)
		e.end(endUnseen(ctx, boxes, rec.BoxID))
	}
}

// endUnseen is the end of an exec that nobody saw: with its box, or with its init.
func endUnseen(ctx context.Context, boxes Boxes, box string) api.ExitStatus {
	if status, err := boxes.Status(ctx, box); err == nil && status == api.Stopped {
		return api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonBoxStopped, ExitCode: 128 + 9, Signal: 9, FinishedAt: time.Now()}
	}
	return api.ExitStatus{Status: api.ExecLost, FinishedAt: time.Now()}
}

// mend indexes the output that a killed process had spooled and not indexed.
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

// Remove removes all execs of a box that is no more. Those that still run end
// by that, and their readers are told.
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

// abandon says that the box has gone: nothing is written down any more.
func (e *Exec) abandon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removed = true
	e.nudge()
}

// Close ends the reading. Commands go on: what they write waits in their
// pipes for the next process that opens the store.
func (s *Store) Close() {
	s.mu.Lock()
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
	e.poll.until(time.Unix(0, 1)) // long past
}
