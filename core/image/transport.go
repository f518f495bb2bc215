package image

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"sandbox/core/fault"
)

const (
	// timeout is how long a registry may take to answer, and to send the
	// next stride bytes of a blob or all of a smaller document. The time in
	// which we don't read a blob, because our disk is slow for example, does
	// not count.
	timeout = 30 * time.Second
	stride  = 16 << 10
)

var errSilent = errors.New("no answer in time")

// patient is a transport that limits what a registry can do to us: how long it
// is silent, how much it sends and where it leads. It also refuses to be redirected
// from TLS to plain HTTP.
type patient struct {
	base    *http.Transport
	timeout time.Duration
	plain   bool // whether plain HTTP is allowed
}

func newPatient(s Sources, registry string) *patient {
	p := &patient{timeout: s.Timeout, plain: s.plain(registry)}
	if p.timeout == 0 {
		p.timeout = timeout
	}
	to := toward(registry)
	p.base = &http.Transport{
		Proxy: to.proxied(s.Proxy),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return to.dial(ctx, net.Dialer{Timeout: p.timeout}, network, address)
		},
		TLSClientConfig:        s.TLS.Clone(),
		DisableCompression:     true, // digests are those of the bytes as sent
		MaxResponseHeaderBytes: 1 << 20,
		MaxConnsPerHost:        2 * parallel,
		IdleConnTimeout:        timeout,
	}
	return p
}

// blobRequest is the context key of a request for a blob; its value is the
// blob's size. For a request without it, the answer must be small and come
// soon.
type blobRequest struct{}

// RoundTrip implements [http.RoundTripper]. A request whose body can be had again
// is sent with a fresh one each time, because the login may send it twice. While
// a body is sent, the registry is not silent. Errors: Upstream (see patient).
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !p.plain {
		return nil, fault.New(fault.Upstream, "the connection to %s would have no TLS: if that is intended, set its transport to http in the registries", req.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watchdog{timer: time.AfterFunc(p.timeout, func() { cancel(errSilent) }), most: p.timeout, left: p.timeout}
	b := &body{ctx: ctx, end: func() { w.timer.Stop(); cancel(nil) }, left: 2 * maxDocument}
	resp, err := p.send(req.WithContext(ctx), w)
	if err != nil {
		err = b.cause(err)
		b.end()
		return nil, err
	}
	if size, ok := ctx.Value(blobRequest{}).(int64); ok {
		w.timer.Stop()
		b.left, b.watchdog = size, w
	}
	b.ReadCloser, resp.Body = resp.Body, b
	return resp, nil
}

// send sends a request. The watchdog rests while a part of the body is read.
func (p *patient) send(req *http.Request, w *watchdog) (*http.Response, error) {
	if again := req.GetBody; again != nil {
		req.GetBody = func() (io.ReadCloser, error) { // also called by the transport, when a connection turns out to be closed
			content, err := again()
			return &sending{content, w}, err
		}
		var err error
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return p.base.RoundTrip(req)
}

// watchdog ends a request when its timer goes off.
type watchdog struct {
	timer *time.Timer
	most  time.Duration // how long the registry may be silent
	left  time.Duration // how much of it is left for the next stride bytes of a blob
}

// sending is the body of a request on its way.
type sending struct {
	io.ReadCloser
	watchdog *watchdog
}

func (s *sending) Read(p []byte) (int, error) {
	s.watchdog.timer.Stop()
	defer s.watchdog.timer.Reset(s.watchdog.most)
	return s.ReadCloser.Read(p)
}

// body is the body of an answer, with its limits.
type body struct {
	io.ReadCloser
	ctx      context.Context
	end      func()
	watchdog *watchdog // works while a blob is read; nil if the whole body must arrive in one timeout
	moved    int       // bytes since all of the timeout was left
	left     int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fault.New(fault.Upstream, "the registry sends more than it announced")
	}
	return n, b.cause(err)
}

// read reads while the watchdog works.
func (b *body) read(p []byte) (int, error) {
	w := b.watchdog
	if w == nil {
		return b.ReadCloser.Read(p)
	}
	begun := time.Now()
	w.timer.Reset(w.left)
	n, err := b.ReadCloser.Read(p)
	w.timer.Stop()
	w.left -= time.Since(begun)
	if b.moved += n; b.moved >= stride {
		b.moved, w.left = 0, w.most
	}
	return n, err
}

// cause returns why the request was ended. Only the expiry of the timer needs
// this: the error itself does not tell it.
func (b *body) cause(err error) error {
	if err != nil && errors.Is(context.Cause(b.ctx), errSilent) {
		return errSilent
	}
	return err
}

func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
