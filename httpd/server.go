// Package httpd serves boxes, execs, keys and logs over HTTP, as the contract
// describes it. Each noun has a file with its handlers: a handler decodes the
// body, calls package core, and encodes the reply. All routes stand in one table,
// [Routes]. All requests go through the steps in middleware.go, and all failures
// are written by errors.go.
package httpd

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/console"
	"sandbox/core"
	"sandbox/core/code"
	"sandbox/core/image"
	"sandbox/httpd/proxy"
	"sandbox/httpd/share"
	"sandbox/logs"
	"sandbox/logs/ingest"
	"sandbox/mcp"
	"sandbox/metrics"
	"sandbox/spool"
)

// Config holds the parts and settings of a server. The parts stay the caller's,
// which closes them after the server.
type Config struct {
	Runtime     *core.Runtime
	Keys        *auth.Store
	Idempotency *Idempotency
	Spool       *spool.Store
	Mains       *spool.Store // what main commands print; nil where nobody keeps it
	// Shared says that other servers work on the same boxes, and that one goes on with
	// the execs of another that has died.
	Shared bool
	Images *image.Store
	// Code has the contexts that run code, which those share who work on the same
	// boxes in this process; nil for contexts of the server's own.
	Code *code.Contexts
	Logs *logs.Service // nil to answer every query with 503
	// History has what boxes used over time; nil keeps nothing.
	History *metrics.History
	Ingest  *ingest.Writer // nil to store no logs
	// Tools says what tools for language models work on, and their limits; nil
	// for no tools.
	Tools *mcp.Config
	// Lines returns what takes the output of a command that the spool does not
	// have, for the log table, and what is called behind the last of it. Neither
	// waits. nil for none.
	Lines func(api.Exec) (add func(stderr bool, p []byte), end func())
	// Held is a directory for uploads whose file comes before its destination.
	Held string
	Log  *slog.Logger
	// Console has the sessions of the web console; nil for no console.
	Console *console.Sessions
	// Origin returns where a browser on this host finds the server, as in
	// http://127.0.0.1:9090, or "" if it can't; nil for nowhere.
	Origin func() string
	// Environment is the environment of this server: a key's permissions for
	// logs must be for the same.
	Environment string
	// Shares signs the links that lead people without a key to ports; nil for none.
	Shares *share.Signer
	// PortDomain is the domain whose hosts PORT-BOX lead to ports of boxes, in small
	// letters, or "".
	PortDomain string
	// Prefix is the segment between /v1 and /boxes, or "".
	Prefix string
	// Hosted mounts all routes under /api.
	Hosted bool
	// HostRoots are the directories of this host that requests over TCP may
	// name paths in; if the boxes are elsewhere, of their hosts, and for all requests. If there are any, they bound the users of the Unix socket too,
	// except root and the user that this server runs as.
	HostRoots []string
	// Closed are paths of this host that no box may see, whichever client makes it.
	Closed []string
	// Publish are the addresses that requests over TCP may publish ports on,
	// besides the loopback. A port that names none is published on the first.
	// If there is none, that is 127.0.0.1.
	Publish []netip.Addr
	// Timeout bounds how long a client may take for the head of a request, for
	// a JSON body, between two pieces of an upload, and to read a reply that is
	// not a stream; 0 means 30 s.
	Timeout time.Duration
	// Heartbeat is the time between two signs of life on a stream that is
	// quiet; 0 means the 15 s of the contract (sections 3 and 5).
	Heartbeat time.Duration
}

// Entrance says how a listener's clients prove who they are.
type Entrance int

// The entrances.
const (
	ByKey  Entrance = iota // every request needs a key
	ByFile                 // the mode of the Unix socket decides who may connect, and they may do everything but what [Config.HostRoots] keeps from them
	// BySession is no listener's: below /ui, on every listener, the cookie of a
	// session of the web console is looked at, and nothing else.
	BySession
)

// Server answers requests on any number of listeners.
type Server struct {
	Config
	local     *auth.Principal
	summaries summaries
	figures   *figures
	mcp       *mcp.Server         // nil without tools
	proxy     *proxy.Proxy        // to programs in boxes
	exporting *semaphore.Weighted // bytes of requests to ingest
	by        [2]*http.Server     // one for each entrance

	// draining ends when the server begins to close: then streams must end,
	// which would otherwise go on.
	draining context.Context
	drain    context.CancelFunc
	inFlight sync.WaitGroup // all requests, with the WebSockets that http.Server does not track
}

// New makes a server. It starts nothing before Serve. Errors: Config (the prefix
// or a host root is not possible).
func New(c Config) (*Server, error) {
	if len(c.Publish) == 0 {
		c.Publish = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	if err := c.checkPrefix(); err != nil {
		return nil, err
	}
	if err := checkRoots(c.HostRoots, c.Runtime.Elsewhere()); err != nil {
		return nil, err
	}
	if c.Code == nil {
		c.Code = code.New()
	}
	if c.Logs == nil {
		var err error
		if c.Logs, err = logs.New(logs.Config{Budget: logs.DefaultBudget()}); err != nil {
			return nil, err
		}
	}
	s := &Server{Config: c, local: auth.Local(c.Environment), figures: newFigures(c.Runtime), exporting: semaphore.NewWeighted(4 * ingest.MaxBody)}
	s.proxy = proxy.New(func(ctx context.Context, box string, port int) (net.Conn, error) {
		return s.Runtime.At(box).Connect(ctx, port)
	})
	s.draining, s.drain = context.WithCancel(context.Background())
	if err := s.newTools(); err != nil {
		return nil, err
	}
	for _, e := range []Entrance{ByKey, ByFile} {
		s.by[e] = &http.Server{
			Handler:           s.handler(e),
			ReadHeaderTimeout: c.Timeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			// net/http logs only that clients broke off.
			ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		}
	}
	s.by[ByFile].ConnContext = withPeer
	return s, nil
}

// Serve answers requests on l until Close, and closes l.
func (s *Server) Serve(l net.Listener, e Entrance) error {
	err := s.by[e].Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close tells streams to end and waits for the requests in flight. When ctx ends
// it breaks off those that are left. Boxes go on running.
func (s *Server) Close(ctx context.Context) error {
	s.drain()
	var errs []error
	if s.mcp != nil {
		errs = append(errs, s.mcp.Close(ctx))
	}
	for _, server := range s.by {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, server.Close())
		}
	}
	done := make(chan struct{})
	go func() {
		s.inFlight.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.proxy.Close()
	return errors.Join(errs...)
}

const (
	defaultTimeout = 30 * time.Second
	idleTimeout    = 120 * time.Second // until the next request on a connection
	maxHead        = 64 << 10          // of a request line and its headers (contract, section 6)
	maxHeaderBytes = maxHead - 4096    // net/http adds 4096 for the first request of a connection, and 8192 for others
	maxBody        = 1 << 20           // of JSON (contract, section 6)
)
