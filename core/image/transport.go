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
	// next stride bytes of a blob or all of a smaller document.
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
	timer := time.AfterFunc(p.timeout, func() { cancel(errSilent) })
	b := &body{ctx: ctx, end: func() { timer.Stop(); cancel(nil) }, left: 2 * maxDocument}
	if size, ok := ctx.Value(blobRequest{}).(int64); ok {
		b.left, b.again = size, func() { timer.Reset(p.timeout) }
	}
	resp, err := p.send(req.WithContext(ctx), func() { timer.Reset(p.timeout) })
	if err != nil {
		err = b.cause(err)
		b.end()
		return nil, err
	}
	b.ReadCloser, resp.Body = resp.Body, b
	return resp, nil
}

// send sends a request. It calls again when a part of the body was taken.
func (p *patient) send(req *http.Request, again func()) (*http.Response, error) {
	if req.GetBody != nil {
		content, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = &sending{content, again}
	}
	return p.base.RoundTrip(req)
}

// sending is the body of a request on its way.
type sending struct {
	io.ReadCloser
	again func()
}

func (s *sending) Read(p []byte) (int, error) {
	s.again()
	return s.ReadCloser.Read(p)
}

// body is the body of an answer, with its limits.
type body struct {
	io.ReadCloser
	ctx   context.Context
	end   func()
	again func() // restarts the timeout; nil if the whole body must arrive within one
	moved int    // bytes since the timeout was restarted
	left  int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.moved += n; b.again != nil && b.moved >= stride {
		b.again()
		b.moved = 0
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, fault.New(fault.Upstream, "the registry sends more than it announced")
	}
	return n, b.cause(err)
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
