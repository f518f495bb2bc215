package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"sandbox/core"
	"sandbox/core/engine/link"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// lines are the ways of this process to the inits of boxes.
type lines struct {
	engine *Engine
	mu     sync.Mutex
	byPod  map[string]*way // by the UID of the pod
	closed bool
}

// way is the way to one init.
type way struct {
	host    *link.Host
	pod     *corev1.Pod
	settled atomic.Bool // init has the settings of its box
}

// of returns the way to the init in a pod.
func (l *lines) of(pod *corev1.Pod) (*way, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fault.New(fault.Stopped, "the engine was closed")
	}
	if w := l.byPod[string(pod.UID)]; w != nil {
		return w, nil
	}
	if l.byPod == nil {
		l.byPod = map[string]*way{}
	}
	w := &way{pod: pod}
	w.host = link.NewHost(func(ctx context.Context) (net.Conn, error) { return l.engine.dial(ctx, pod) })
	l.byPod[string(pod.UID)] = w
	return w, nil
}

// forget ends the way to a pod that has gone.
func (l *lines) forget(pod *corev1.Pod) {
	l.mu.Lock()
	w := l.byPod[string(pod.UID)]
	delete(l.byPod, string(pod.UID))
	l.mu.Unlock()
	w.close()
}

// known returns the pods that there are ways to.
func (l *lines) known() (pods []*corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.byPod {
		pods = append(pods, w.pod)
	}
	return pods
}

func (l *lines) close() {
	l.mu.Lock()
	all := l.byPod
	l.byPod, l.closed = nil, true
	l.mu.Unlock()
	for _, w := range all {
		w.close()
	}
}

func (w *way) close() {
	if w != nil {
		_ = w.host.Close()
	}
}

// Dial returns a connection to the init of a box; see [inits.Boxes].
func (e *Engine) Dial(ctx context.Context, id string, polled bool) (*wire.Conn, error) {
	rec, pod, err := e.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !rec.Status.Up() {
		return nil, rec.NotRunning()
	}
	conn, err := e.reach(ctx, pod, rec, polled)
	if err != nil {
		return nil, e.Explain(id, err)
	}
	return conn, nil
}

// reach returns a connection to the init in a pod, which knows its box.
func (e *Engine) reach(ctx context.Context, pod *corev1.Pod, rec core.Record, polled bool) (*wire.Conn, error) {
	w, err := e.lines.of(pod)
	if err != nil {
		return nil, err
	}
	if err := w.settle(ctx, rec); err != nil {
		return nil, err
	}
	return w.host.Connect(ctx, polled)
}

// settle tells init which box it is in, once. Another program may have told it before.
func (w *way) settle(ctx context.Context, rec core.Record) error {
	if w.settled.Load() {
		return nil
	}
	conn, err := w.host.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer conn.Close()
	o := rec.Options
	err = conn.Ask(ctx, wire.TypeConfig, wire.Config{
		Env: o.Env, WorkingDir: o.WorkingDir, User: o.User, Strict: o.Seccomp == options.SeccompStrict,
	}, nil)
	if err != nil {
		return fmt.Errorf("tell the box its settings: %w", err)
	}
	w.settled.Store(true)
	return nil
}

// Explain returns err if it is classified. Otherwise it finds out why the init of a box
// could not be reached.
func (e *Engine) Explain(id string, err error) error {
	if fault.Classified(err) {
		return err
	}
	rec, _, missing := e.find(e.ctx, id)
	short, known := fault.Host(err)
	switch {
	case known && short == fault.ResourceExhausted:
		return fault.Wrap(fault.ResourceExhausted, err, "reach box %s: this process or the host is out of file descriptors or memory", id)
	case missing != nil:
		return missing
	case !rec.Status.Up():
		return rec.NotRunning()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Of(err)
	case wire.CutOff(err):
		return fault.Wrap(fault.InvalidState, err, "box %s is stopping: wait until it has stopped, or remove it", id)
	}
	return fault.Wrap(fault.Engine, err, "the init of box %s can't be reached in its pod", id)
}

// dial makes a line to the init in a pod.
func (e *Engine) dial(ctx context.Context, pod *corev1.Pod) (net.Conn, error) {
	conn, err := e.carrier(ctx, pod.Name)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, e.keys.config(pod))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("verify the init of pod %s: %w", pod.Name, err)
	}
	return secure, nil
}

// carrier returns a connection to the port of the init in a pod.
func (e *Engine) carrier(ctx context.Context, name string) (net.Conn, error) {
	direct := e.config.Reach == ReachDirect || e.config.Reach == "" && e.conn.inside
	if !direct {
		return e.forward(ctx, name)
	}
	pod := e.pods.at(name)
	if pod == nil || pod.Status.PodIP == "" {
		return nil, net.ErrClosed
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(linkPort)))
}
