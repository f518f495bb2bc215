package fake

import (
	"context"
	"os"
	"syscall"
	"time"

	"sandbox/api"
	"sandbox/core"
)

// Pause stops the process groups of a box's commands. There is no memory to reclaim.
func (e *Engine) Pause(_ context.Context, id string, _ bool) (core.Record, error) {
	return e.turn(id, api.Running, syscall.SIGSTOP, paused)
}

// paused marks a box as paused.
func paused(r *core.Record) {
	now := time.Now().UTC()
	r.Status, r.PausedAt, r.UpdatedAt = api.Paused, &now, now
}

// Resume lets the process groups of a paused box go on.
func (e *Engine) Resume(_ context.Context, id string) (core.Record, error) {
	return e.turn(id, api.Paused, syscall.SIGCONT, func(r *core.Record) {
		r.Status, r.PausedAt, r.PID, r.Reason, r.UpdatedAt = api.Running, nil, os.Getpid(), "", time.Now().UTC()
	})
}

// turn sends a signal to the commands of a box in one state, which is in another then.
func (e *Engine) turn(id string, from api.BoxStatus, sig syscall.Signal, change func(*core.Record)) (core.Record, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, err := e.in(id, from)
	if err != nil {
		return core.Record{}, err
	}
	for _, c := range b.execs {
		if c.group != 0 {
			_ = syscall.Kill(-c.group, sig)
		}
	}
	change(&b.record)
	if from == api.Paused {
		e.setTime(b)
		e.setIdle(b)
	}
	return b.record, nil
}
