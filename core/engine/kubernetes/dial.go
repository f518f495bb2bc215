package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"

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
	host *link.Host
	pod  *corev1.Pod

	mu      sync.Mutex
	settled bool // init has the settings of its box
	forward httpstream.Connection
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
	w.host = link.NewHost(func(ctx context.Context) (net.Conn, error) { return l.engine.dial(ctx, w) })
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
	if w == nil {
		return
	}
	_ = w.host.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.forward != nil {
		_ = w.forward.Close()
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
	w.mu.Lock()
	done := w.settled
	w.mu.Unlock()
	if done {
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
	w.mu.Lock()
	w.settled = true
	w.mu.Unlock()
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
func (e *Engine) dial(ctx context.Context, w *way) (net.Conn, error) {
	conn, err := e.carrier(ctx, w)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, e.keys.config(w.pod.Name))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("verify the init of pod %s: %w", w.pod.Name, err)
	}
	return secure, nil
}

// carrier returns a connection to the port of the init in a pod.
func (e *Engine) carrier(ctx context.Context, w *way) (net.Conn, error) {
	direct := e.config.Reach == ReachDirect || e.config.Reach == "" && e.conn.inside
	if !direct {
		return e.forward(ctx, w)
	}
	pod := e.pods.named(w.pod.Name)
	if pod == nil || pod.Status.PodIP == "" {
		return nil, net.ErrClosed
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(linkPort)))
}

// forward returns a connection through the API server. All connections to a pod share
// one of the API server's.
func (e *Engine) forward(ctx context.Context, w *way) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.forward != nil {
		if conn, err := openForwarded(ctx, w.forward); err == nil {
			return conn, nil
		}
		_ = w.forward.Close()
		w.forward = nil
	}
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(e.api.forward(e.conn.namespace, w.pod.Name), e.conn.rest)
	if err != nil {
		return nil, failure(err, "reach pod %s through the API server", w.pod.Name)
	}
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, failure(err, "reach pod %s through the API server", w.pod.Name)
	}
	w.forward = conn
	return openForwarded(ctx, conn)
}

// forwarded is a connection to a port of a pod, as a stream of the API server's.
type forwarded struct {
	httpstream.Stream
	failed      httpstream.Stream
	read, write *time.Timer
}

// openForwarded opens a stream as newForwarded does, and waits no longer than until the
// connection or ctx ends: the library waits for an answer for 30 s, also on a connection
// that was cut meanwhile. What it still gets after that is closed.
func openForwarded(ctx context.Context, conn httpstream.Connection) (net.Conn, error) {
	var opened net.Conn
	done := make(chan error)
	left := make(chan struct{})
	defer close(left)
	go func() {
		c, err := newForwarded(conn)
		opened = c
		select {
		case done <- err:
		case <-left:
			if err == nil {
				_ = c.Close()
			}
		}
	}()
	select {
	case err := <-done:
		return opened, err
	case <-conn.CloseChan():
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newForwarded opens a stream for the bytes, and one for what fails, which closes both.
func newForwarded(conn httpstream.Connection) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(linkPort))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(time.Now().UnixNano(), 36))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failed, err := conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		_ = failed.Reset()
		return nil, err
	}
	f := &forwarded{Stream: data, failed: failed}
	cut := func() { _ = f.Close() }
	f.read, f.write = time.AfterFunc(time.Hour, cut), time.AfterFunc(time.Hour, cut)
	f.read.Stop()
	f.write.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, failed) // it ends with the connection, or when something fails
		cut()
	}()
	return f, nil
}

// Close closes both streams.
func (f *forwarded) Close() error {
	f.read.Stop()
	f.write.Stop()
	return errors.Join(f.Reset(), f.failed.Reset())
}

func (*forwarded) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (*forwarded) RemoteAddr() net.Addr { return &net.TCPAddr{Port: linkPort} }

// SetDeadline bounds reads and writes. Behind a deadline the connection is closed: what
// uses it takes a deadline that passes for a cut.
func (f *forwarded) SetDeadline(t time.Time) error {
	return errors.Join(f.SetReadDeadline(t), f.SetWriteDeadline(t))
}

// SetReadDeadline bounds reads; see SetDeadline.
func (f *forwarded) SetReadDeadline(t time.Time) error { return arm(f.read, t) }

// SetWriteDeadline bounds writes; see SetDeadline.
func (f *forwarded) SetWriteDeadline(t time.Time) error { return arm(f.write, t) }

func arm(timer *time.Timer, t time.Time) error {
	timer.Stop()
	if !t.IsZero() {
		timer.Reset(max(time.Until(t), 0))
	}
	return nil
}
