package daemon

import (
	"context"

	"sandbox/core"
)

// spooled is what the spool asks about boxes when it takes up their execs.
type spooled struct{ *core.Runtime }

// Attach takes over an exec of the daemon that ran before.
func (s spooled) Attach(ctx context.Context, box, exec string) (*core.Exec, error) {
	b, err := s.Get(ctx, box)
	if err != nil {
		return nil, err
	}
	return b.Attach(ctx, exec)
}

// State tells how a box stands.
func (s spooled) State(ctx context.Context, box string) (core.State, error) {
	b, err := s.Get(ctx, box)
	if err != nil {
		return "", err
	}
	rec, err := b.Record(ctx)
	return rec.State, err
}

// sweep removes the output of boxes that are no more.
func (d *Daemon) sweep(ctx context.Context) {
	if err := d.spool.Sweep(ctx, spooled{d.runtime}); err != nil {
		d.Log.ErrorContext(ctx, "the output of removed boxes is left", "error", err)
	}
}
