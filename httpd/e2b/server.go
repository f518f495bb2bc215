// Package e2b answers E2B's SDKs, unmodified, with the boxes of this daemon. There
// are two sides: the control plane, which makes and ends boxes for whoever has an
// API key, and what E2B runs inside of a box, which here is the daemon too: no
// program in the box takes part. A request of the second kind names its box and
// proves itself with a token of that box; see access.go.
//
// Each noun has a file. Boxes, execs and files are those of package core, and the
// output of processes is in the daemon's spool: the native API sees all of them. A
// failure has the form that its route's clients read; see failure.go. What E2B has
// and this server has not stands in absent.go.
package e2b

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"sandbox/auth"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/httpd/proxy"
	"sandbox/metrics"
	"sandbox/spool"
)

// Config holds the parts and settings of a server. The parts stay the caller's,
// which closes them after the server.
type Config struct {
	Runtime *core.Runtime
	Keys    *auth.Store
	Spool   *spool.Store
	Mains   *spool.Store // what main commands print, for reading alone; nil for none
	Code    *code.Contexts
	History *metrics.History // nil keeps nothing
	Log     *slog.Logger
	// Secret is what the tokens of boxes are made with. It is the same after a
	// restart, or clients lose the boxes that they are connected to.
	Secret []byte
	// Domain is what SDKs put behind the number of a port and the id of a box to
	// name the host where the port is, as in "localhost:3000".
	Domain string
	// PortDomain is a domain whose hosts lead here, which takes the place of Domain; ""
	// for none.
	PortDomain string
	// Aliases returns the short names that images have.
	Aliases func() map[string]string
}

// Server answers requests on one listener.
type Server struct {
	Config
	http     *http.Server
	accounts accounts
	watchers watchers
	proxy    *proxy.Proxy

	// draining ends when the server begins to close: then streams must end, which
	// would otherwise go on.
	draining context.Context
	drain    context.CancelFunc
}

const (
	patience       = 30 * time.Second // until the head of a request has come, or a client has read a piece of a reply
	idleTimeout    = 120 * time.Second
	maxHeaderBytes = 64 << 10
	maxDocument    = 1 << 20  // of JSON to the control plane
	maxMessage     = 16 << 20 // of a Connect message
)

// New makes a server. It starts nothing before Serve.
func New(c Config) *Server {
	s := &Server{Config: c}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.proxy = s.newProxy()
	s.http = &http.Server{
		Handler:           s.recovered(s.hosts(paced(s.handler()))),
		ReadHeaderTimeout: patience,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols(),
		// net/http logs only that clients broke off.
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// protocols are HTTP/1.1 and HTTP/2, which SDKs speak without TLS too.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return &p
}

// Serve answers requests on l until Close, and closes l.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close tells streams to end and waits for the requests in flight. When ctx ends it
// breaks off those that are left. Boxes and their processes go on running.
func (s *Server) Close(ctx context.Context) error {
	s.drain()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.watchers.wait()
	s.proxy.Close()
	return err
}

// streaming returns a context that ends with ctx, and when the server closes.
func (s *Server) streaming(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
