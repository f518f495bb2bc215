// Package kubernetes is the engine whose boxes are pods. A box's init is process 1 of
// its pod's container and serves the engine over TLS (package link), so that what is done
// in boxes is the same code as on one machine (package inits).
//
// The cluster holds all state: a pod has the record of its box in an annotation. So
// several programs can use one namespace at once, and none of them must be there.
package kubernetes

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sandbox/core"
	"sandbox/core/engine/inits"
	"sandbox/core/fault"
)

// Engine makes boxes in one namespace of a cluster. It is safe for concurrent use.
type Engine struct {
	*inits.Client
	config   Config
	conn     connection
	api      objects
	pods     *pods
	services *services
	disks    *disks
	turns    turns
	looks    looks
	lines    lines
	spares   spares

	ready sync.Mutex // held while the namespace is prepared
	keys  *authority // nil until it is

	ctx    context.Context //nolint:containedctx // the life of the Engine, in which its goroutines work
	cancel context.CancelFunc
	work   sync.WaitGroup
}

var _ core.Engine = (*Engine)(nil)

// Open reads the configuration of the cluster. It sends nothing. Errors: Config.
func Open(c Config) (*Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	conn, err := c.connect()
	if err != nil {
		return nil, err
	}
	return open(c, conn)
}

func open(c Config, conn connection) (*Engine, error) {
	all, err := newObjects(conn)
	if err != nil {
		return nil, err
	}
	e := &Engine{config: c, conn: conn, api: all}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.Client = inits.New(e, true)
	e.pods = newPods(all.pods)
	e.services = newServices(all.services, e.pods.wake)
	e.disks = &disks{client: all.disks, tell: e.pods.wake, byName: map[string]*corev1.PersistentVolumeClaim{}, since: map[types.UID]time.Time{}, whole: c.DiskClass == ""}
	e.lines.engine, e.spares = e, spares{engine: e, tried: map[string]string{}}
	return e, nil
}

// Close ends this process's use of the cluster. Boxes go on running.
func (e *Engine) Close() error {
	e.cancel()
	e.lines.close()
	e.work.Wait()
	return nil
}

// begin prepares the namespace, once, and waits until this process knows its pods.
// Errors: those of failure.
func (e *Engine) begin(ctx context.Context) error {
	e.ready.Lock()
	defer e.ready.Unlock()
	if e.ctx.Err() != nil {
		return fault.New(fault.Stopped, "the engine was closed")
	}
	if e.keys != nil {
		return nil
	}
	e.pods.start.Do(func() {
		e.work.Go(func() { e.pods.follow(e.ctx) })
		if e.config.PublishService != "" {
			e.work.Go(func() { e.services.follow(e.ctx) })
		}
		if e.config.DiskClass != "" {
			e.work.Go(func() { e.disks.follow(e.ctx) })
		}
		e.work.Go(func() { e.tend(e.ctx) })
	})
	if err := e.known(ctx); err != nil {
		return err
	}
	if e.config.PublishService != "" {
		if err := e.services.known(ctx, e.pods.changes); err != nil {
			return err
		}
	}
	keys, err := e.authority(ctx)
	if err != nil {
		return err
	}
	if err := e.fence(ctx); err != nil {
		return err
	}
	if e.config.Pool > 0 {
		if e.spares.resizes, err = e.canResize(ctx); err != nil {
			return err
		}
	}
	e.keys = keys
	return nil
}

// known waits until this process knows all boxes. Errors: those of failure.
func (e *Engine) known(ctx context.Context) error {
	for {
		changed := e.pods.changes()
		pods, noPods := e.pods.known()
		disks, noDisks := e.disks.known()
		if pods && disks {
			return nil
		}
		if noPods != nil {
			return failure(noPods, "list the boxes of the namespace")
		}
		if noDisks != nil {
			return failure(noDisks, "list the disks of the boxes of the namespace")
		}
		select {
		case <-ctx.Done():
			return failure(ctx.Err(), "list the boxes of the namespace")
		case <-changed:
		}
	}
}
