// Package kubernetes is the engine whose boxes are pods. A box's init is process 1 of
// its pod's container and serves the engine over TLS (package link), so that what is done
// in boxes is the same code as on one machine (package inits).
//
// The cluster holds all state: a pod has the record of its box in an annotation. So
// several programs can use one namespace at once, and none of them must be there.
package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	news     *news // of the pods, disks and Services of boxes
	pods     *pods
	services *copies[*corev1.Service]
	disks    *disks
	turns    turns
	looks    looks
	expiring sync.Map // the UIDs of pods whose time is over, and whose end has begun
	lines    lines
	spares   spares
	agents   agents

	start sync.Once
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
	e := &Engine{config: c, conn: conn, api: all, news: newNews()}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.Client = inits.New(e, true)
	e.pods, e.services, e.disks = newPods(e.news), newServices(e.news), newDisks(e.news)
	e.lines.engine, e.spares = e, spares{engine: e, tried: map[string]string{}}
	e.agents = agents{engine: e, described: map[string]bool{}, claiming: map[string]int{}, keys: map[types.UID]*ecdsa.PublicKey{}}
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
	e.start.Do(e.follow)
	if err := e.known(ctx); err != nil {
		return err
	}
	keys, err := e.authority(ctx)
	if err != nil {
		return err
	}
	if err := e.fence(ctx); err != nil {
		return err
	}
	if err := e.spares.discover(ctx); err != nil {
		return err
	}
	e.keys = keys
	return nil
}

// follow begins to watch what boxes are made of, and to tend them.
func (e *Engine) follow() {
	e.work.Go(func() { mirror(e.ctx, e.api.pods, labelled(labelSlot), &corev1.Pod{}, e.pods, e.pods.note) })
	if e.config.PublishService != "" {
		e.work.Go(func() {
			mirror(e.ctx, e.api.services, labelled(labelSlot), &corev1.Service{}, e.services, e.services.note)
		})
	}
	if e.config.DiskClass != "" {
		e.work.Go(func() {
			mirror(e.ctx, e.api.disks, labelled(labelBox), &corev1.PersistentVolumeClaim{}, e.disks, e.disks.note)
		})
	}
	e.work.Go(func() { e.tend(e.ctx) })
}

// labelled selects the objects that have a label.
func labelled(label string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.LabelSelector = label }
}

// known waits until this process knows all boxes. Errors: those of failure.
func (e *Engine) known(ctx context.Context) error {
	for _, kind := range []struct {
		watched bool
		known   func() (bool, error)
		what    string
	}{
		{true, e.pods.known, "boxes of the namespace"},
		{e.config.DiskClass != "", e.disks.known, "disks of the boxes of the namespace"},
		{e.config.PublishService != "", e.services.known, "Services of the namespace"},
	} {
		if !kind.watched {
			continue
		}
		if err := e.news.await(ctx, kind.known); err != nil {
			return failure(err, "list the %s", kind.what)
		}
	}
	return nil
}
