package core

import (
	"context"
	"time"

	"sandbox/core/options"
)

// Box is a handle on a box of the home. Several handles may name one box. A
// Box is safe for concurrent use.
type Box struct {
	r  *Runtime
	id string
}

func (r *Runtime) box(rec Record) *Box { return &Box{r: r, id: rec.ID} }

// ID gives the box's id.
func (b *Box) ID() string { return b.id }

// Record gives what is known of the box now. Errors: BoxNotFound.
func (b *Box) Record(ctx context.Context) (Record, error) { return b.r.engine.Get(ctx, b.id) }

// Start starts the box again after a stop. Errors: BoxNotFound, InvalidState.
func (b *Box) Start(ctx context.Context) (Record, error) {
	if err := b.r.refuseAfterShutdown(); err != nil {
		return Record{}, err
	}
	return b.r.engine.Start(ctx, b.id)
}

// Stop ends all processes of the box: SIGTERM, SIGKILL after grace. The disk
// is kept, unless auto_remove says otherwise. Errors: BoxNotFound, InvalidState.
func (b *Box) Stop(ctx context.Context, grace time.Duration) (Record, error) {
	rec, err := b.r.engine.Stop(ctx, b.id, grace)
	if err == nil && rec.Options.AutoRemove {
		b.r.forget(b.id)
	}
	return rec, err
}

// Usage measures the box. Errors: BoxNotFound.
func (b *Box) Usage(ctx context.Context) (Usage, error) { return b.r.engine.Usage(ctx, b.id) }

// Exec starts a command. o has passed its Check. A command that can't be
// started is an exec too: it has a line on stderr and ends as [ExecStatus]
// says. Errors: BoxNotFound, InvalidState (not running), Engine.
func (b *Box) Exec(ctx context.Context, o options.Exec) (*Exec, error) {
	p, err := b.r.engine.Exec(ctx, b.id, o)
	if err != nil {
		b.r.stats.execErrors.Add(1)
		return nil, err
	}
	b.r.stats.execs.Add(1)
	return &Exec{p: p, errors: &b.r.stats.execErrors}, nil
}
