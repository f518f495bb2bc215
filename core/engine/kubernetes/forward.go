package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forward returns a connection to the init in a pod through the API server. It has a
// tunnel to itself: one that several shared would hold up all of them when it stands
// still or a stream of it is not read.
func (e *Engine) forward(ctx context.Context, pod string) (net.Conn, error) {
	t, err := e.tunnel(ctx, pod)
	if nodeRefused(err) {
		return nil, fmt.Errorf("reach pod %s through the API server: %w", pod, err)
	}
	if err != nil {
		return nil, failure(err, "reach pod %s through the API server", pod)
	}
	conn, err := t.open(ctx)
	if err != nil {
		t.close()
		return nil, failure(err, "reach the init of pod %s through the API server", pod)
	}
	return conn, nil
}

// nodeRefused reports whether the API server has asked the node of a pod, which can't
// connect it: the pod has just ended, or has not begun. What that means for its box is for
// those to say who know the box. The library gives no status but in the text.
func nodeRefused(err error) bool {
	return httpstream.IsUpgradeFailure(err) && strings.Contains(err.Error(), http.StatusText(http.StatusInternalServerError))
}

// tunnel is a connection to the API server that leads to the ports of one pod.
type tunnel struct {
	httpstream.Connection
	carrier net.Conn
}

// tunnel makes a tunnel to a pod, and gives up as soon as ctx ends: the library looks at
// ctx only until it is connected, so the connection is closed under it then.
func (e *Engine) tunnel(ctx context.Context, pod string) (*tunnel, error) {
	transport, holder, err := websocket.RoundTripperFor(e.conn.rest)
	if err != nil {
		return nil, err
	}
	t := &tunnel{}
	held := func() bool { return true }
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		t.carrier = got.Conn
		held = context.AfterFunc(ctx, t.cut)
	}})
	req, err := http.NewRequestWithContext(traced, http.MethodGet, e.api.forward(e.conn.namespace, pod).String(), nil)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(transport, holder, req, constants.WebsocketsSPDYTunnelingPortForwardV1)
	if !held() {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	t.Connection, err = spdy.NewClientConnectionWithPings(portforward.NewTunnelingConnection("client", conn), portforward.PingPeriod)
	return t, err
}

// cut ends what carries the tunnel, without a word: to tell the other side would wait
// for as long as that one takes no bytes.
func (t *tunnel) cut() {
	if secure, ok := t.carrier.(*tls.Conn); ok {
		_ = secure.NetConn().Close()
	}
	_ = t.carrier.Close()
}

// close ends the tunnel and what the library keeps for it.
func (t *tunnel) close() {
	t.cut()
	_ = t.Close()
}

// open opens the streams of a connection, and waits no longer than until the tunnel or
// ctx ends: the library waits for an answer for 30 s, also on a tunnel that was cut
// meanwhile.
func (t *tunnel) open(ctx context.Context) (net.Conn, error) {
	var conn net.Conn
	done := make(chan error, 1)
	go func() {
		var err error
		conn, err = t.streams()
		done <- err
	}()
	select {
	case err := <-done:
		return conn, err
	case <-t.CloseChan():
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// streams opens a stream for the bytes, and one for what fails, which ends the tunnel.
func (t *tunnel) streams() (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(linkPort))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failed, err := t.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	f := &forwarded{Stream: data, tunnel: t}
	f.read, f.write = time.AfterFunc(time.Hour, t.cut), time.AfterFunc(time.Hour, t.cut)
	f.read.Stop()
	f.write.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, failed) // it ends with the tunnel, or when something fails
		t.cut()
	}()
	return f, nil
}

// forwarded is a connection to a port of a pod, as a stream of a tunnel.
type forwarded struct {
	httpstream.Stream
	tunnel      *tunnel
	read, write *time.Timer
}

// Close ends the connection and its tunnel.
func (f *forwarded) Close() error {
	f.read.Stop()
	f.write.Stop()
	f.tunnel.close()
	return nil
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
