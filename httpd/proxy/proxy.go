// Package proxy passes HTTP requests on to programs in boxes, and their answers back.
// The program is hostile: its answers are bounded, and what they may tell a browser is
// kept to the program itself.
package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"sandbox/core/fault"
)

// Target is a program in a box, and how a client's requests lead to it.
type Target struct {
	Box  string // its full id
	Port int
	Path string // escaped; of the request as the program shall see it
	// Prefix is what stands before Path where the client sees it, escaped and without
	// a slash at its end. "" means that the program has a host of its own. Behind a
	// prefix it shares the host with others, and its pages are kept from them.
	Prefix string
	Query  string // raw
	// Key says that the request's Authorization has a key of this service, which the
	// program must not see.
	Key bool
}

// Proxy passes requests on. It keeps connections to programs for later requests. It is
// safe for concurrent use.
type Proxy struct {
	transport *http.Transport
}

// The bounds of connections to programs.
const (
	// idle is how long a connection is kept that nothing uses. It is shorter than the
	// times of the programs, gunicorn's 2 s and the 5 s of uvicorn and Node: a request
	// that meets the program's close fails, unless it may be sent twice.
	idle        = time.Second
	idlePerPort = 8           // connections that are kept
	maxHead     = 256 << 10   // bytes of the head of an answer
	patience    = time.Second // for a program's "100 Continue"
)

// New returns a Proxy that reaches programs by connect, whose failures are classified.
// Its owner closes it.
func New(connect func(ctx context.Context, box string, port int) (net.Conn, error)) *Proxy {
	return &Proxy{&http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			box, text, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			port, err := strconv.Atoi(text)
			if err != nil {
				return nil, err
			}
			return connect(ctx, box, port)
		},
		DisableCompression: true, MaxIdleConnsPerHost: idlePerPort, IdleConnTimeout: idle,
		MaxResponseHeaderBytes: maxHead, ExpectContinueTimeout: patience,
	}}
}

// Close closes the connections that are kept.
func (p *Proxy) Close() { p.transport.CloseIdleConnections() }

// Serve passes a request on and its answer back, until both have ended or the
// request's context has. Where the program answers with another protocol, as a
// WebSocket, it passes bytes both ways, and each way ends for itself. Errors:
// Canceled, Upstream (what the program sent is not HTTP, or it broke off; the answer
// may have begun), and those of connecting.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, to Target) (err error) {
	defer func() {
		switch v := recover(); {
		case v == http.ErrAbortHandler: //nolint:errorlint,err113 // net/http panics with this very value
			err = to.broken(r, errCutOff)
		case v != nil:
			panic(v) //nolint:forbidigo // it goes on to who handles all panics of requests
		}
	}()
	// A program may answer before it has read all of a request.
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always does
	way := httputil.ReverseProxy{
		Transport: p.transport, FlushInterval: -1, BufferPool: buffers, ErrorLog: silent,
		Rewrite:        to.request,
		ModifyResponse: func(answer *http.Response) error { to.answer(w.Header(), answer); return nil },
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, failed error) { err = to.broken(r, failed) },
	}
	way.ServeHTTP(w, r)
	return err
}

// errCutOff means that an answer ended in the middle.
var errCutOff = errors.New("the answer was cut off")

// silent takes what httputil would print: failures are returned.
var silent = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)

// broken classifies why a request could not be passed on to its end. What the program
// has sent is left out of the message.
func (t Target) broken(r *http.Request, err error) error {
	switch {
	case r.Context().Err() != nil:
		return fault.New(fault.Canceled, "the client has gone")
	case fault.Classified(err):
		return err
	case errors.Is(err, errCutOff):
		return fault.New(fault.Upstream, "the program on port %d of box %s broke off its answer", t.Port, t.Box)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isOp(err), isIdle(err):
		return fault.New(fault.Upstream, "the program on port %d of box %s closed the connection without an answer", t.Port, t.Box)
	}
	return fault.New(fault.Upstream, "what the program on port %d of box %s answered is not HTTP", t.Port, t.Box)
}

// isOp reports whether err is a failure of a connection.
func isOp(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// isIdle reports whether err is that the program has closed a connection that was kept,
// while a request was sent on it. net/http has no name for this failure.
func isIdle(err error) bool {
	return strings.Contains(err.Error(), "http: server closed idle connection")
}
