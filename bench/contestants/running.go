package contestants

import (
	"context"
	"errors"
	"time"

	"sandbox/bench/harness"
	"sandbox/core"
)

// Running holds one running box or container of every contestant that has such
// a thing.
type Running struct {
	ours       *Ours
	box        *core.Box
	runc, crun Container
}

// Container is a running container of a peer. If there is none, its peer says
// why.
type Container struct {
	*OCI
	id   string
	life *harness.Conversation
}

// StartAll starts them. The row of one that can't be started says so.
func (b *Field) StartAll(ctx context.Context) *Running {
	r := &Running{ours: b.Ours, runc: b.Peers.Runc.StartOne(ctx), crun: b.Peers.Crun.StartOne(ctx)}
	if b.Ours.Why == "" {
		var err error
		if r.box, err = b.Ours.Create(ctx); err != nil {
			b.Ours.Why = err.Error()
		}
	}
	return r
}

// StartOne starts a container that does nothing. If that fails, the peer says
// why from then on.
func (o *OCI) StartOne(ctx context.Context) Container {
	c := Container{OCI: o}
	if o.why == "" {
		var err error
		if c.life, c.id, err = o.start(ctx); err != nil {
			o.why = err.Error()
		}
	}
	return c
}

// Contestants returns contestants that run args in the running boxes, up to the
// exit status.
func (r *Running) Contestants(args ...string) []harness.Contestant {
	ours := r.ours.Contestant(func(ctx context.Context) (time.Duration, error) {
		t, err := r.ours.Exec(ctx, r.box, args...)
		return t.End, err
	})
	return []harness.Contestant{ours, r.crun.Contestant(args), r.runc.Contestant(args)}
}

// Contestant returns a contestant that runs args in the container, up to the
// exit status.
func (c Container) Contestant(args []string) harness.Contestant {
	return c.OCI.Contestant(func(ctx context.Context) (time.Duration, error) {
		t, err := c.exec(ctx, c.id, args...)
		return t.End, err
	})
}

// Close removes them.
func (r *Running) Close(ctx context.Context) error {
	var err error
	if r.box != nil {
		err = r.ours.Remove(ctx, r.box)
	}
	return errors.Join(err, r.runc.Close(), r.crun.Close())
}

// Close ends the container, and with it its runc or crun.
func (c Container) Close() error {
	if c.life == nil {
		return nil
	}
	return c.life.Close()
}
