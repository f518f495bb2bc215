package main

import (
	"context"
	"errors"
	"time"

	"sandbox/core"
)

// running is one running box of everyone who has such a thing.
type running struct {
	ours       *ours
	box        *core.Box
	runc, crun container
}

// container is a running container of a peer; without one, its peer says why.
type container struct {
	*oci
	id   string
	life *conversation
}

// startAll starts them. Who can't says so in its row.
func (b *bench) startAll(ctx context.Context) *running {
	r := &running{ours: b.ours, runc: b.peers.runc.startOne(ctx), crun: b.peers.crun.startOne(ctx)}
	if b.ours.why == "" {
		var err error
		if r.box, err = b.ours.create(ctx); err != nil {
			b.ours.why = err.Error()
		}
	}
	return r
}

func (o *oci) startOne(ctx context.Context) container {
	c := container{oci: o}
	if o.why == "" {
		var err error
		if c.life, c.id, err = o.start(ctx); err != nil {
			o.why = err.Error()
		}
	}
	return c
}

// contestants run args in the running boxes, to the exit status.
func (r *running) contestants(args ...string) []contestant {
	ours := r.ours.contestant(func(ctx context.Context) (time.Duration, error) {
		t, err := r.ours.exec(ctx, r.box, args...)
		return t.end, err
	})
	return []contestant{ours, r.crun.contestant(args), r.runc.contestant(args)}
}

func (c container) contestant(args []string) contestant {
	return c.oci.contestant(func(ctx context.Context) (time.Duration, error) {
		t, err := c.exec(ctx, c.id, args...)
		return t.end, err
	})
}

// close removes them.
func (r *running) close(ctx context.Context) error {
	var err error
	if r.box != nil {
		err = r.ours.remove(ctx, r.box)
	}
	return errors.Join(err, r.runc.close(), r.crun.close())
}

func (c container) close() error {
	if c.life == nil {
		return nil
	}
	return c.life.close()
}
