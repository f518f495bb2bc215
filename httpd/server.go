// Package httpd is the box service over HTTP: one file per noun, a body in, a
// call of core, a body out. All routes stand in one table ([Routes]); every
// request takes the way that middleware.go lays out; every failure is written
// by errors.go.
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

	"sandbox/auth"
	"sandbox/core"
	"sandbox/logs"
	"sandbox/logs/ingest"
	"sandbox/spool"
)

// Config is what a server is made of.
type Config struct {
	Runtime     *core.Runtime
	Keys        *auth.Store
	Idempotency *Idempotency
	Spool       *spool.Store
	Logs        *logs.Service  // nil for one without an engine
	Ingest      *ingest.Writer // nil to store no logs
	// Held is a directory on a disk, for uploads that have to wait.
	Held string
	Log  *slog.Logger
	// Environment is the one that observability permissions must be for.
	Environment string
	// Prefix is the segment behind /v1 that boxes are under, or "".
	Prefix string
	// Hosted mounts all routes under /api.
	Hosted bool
	// HostRoots are the directories that paths of requests over TCP must lie in.
	HostRoots []string
	// Closed are paths of the host that no box may see, whoever asks.
	Closed []string
	// Publish is the address that ports are published on: 127.0.0.1 if it
	// is the zero value.
	Publish netip.Addr
	// Timeout is the time that a client has for the head of a request, for
	// a JSON body, between two pieces of an upload, and to take a reply that
	// is no stream; 0 means 30 s.
	Timeout time.Duration
	// Heartbeat is how often a quiet stream says that it is alive; 0 means
	// the 15 s of the contract (sections 3 and 5).
	Heartbeat time.Duration
}

// Entrance says how a listener's clients prove who they are.
type Entrance int

// The entrances.
const (
	ByKey  Entrance = iota // every request needs a key
	ByFile                 // who may connect to the Unix socket may do everything
)

// Server answers requests on any number of listeners.
type Server struct {
	Config
	local     *auth.Principal
	summaries summaries
	metrics   *metrics
	exporting *semaphore.Weighted // bytes of requests to ingest
	by        [2]*http.Server     // by entrance

	// draining ends when the server is about to close: a stream must end
	// itself then.
	draining context.Context
	drain    context.CancelFunc
	inFlight sync.WaitGroup // all requests, WebSockets too: http.Server forgets those
}

// New makes a server. Errors: Config (a prefix or a host root that can't be).
func New(c Config) (*Server, error) {
	if !c.Publish.IsValid() {
		c.Publish = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	if err := c.checkPrefix(); err != nil {
		return nil, err
	}
	if err := checkRoots(c.HostRoots); err != nil {
		return nil, err
	}
	if c.Logs == nil {
		var err error
		if c.Logs, err = logs.New(logs.Config{Budget: logs.DefaultBudget()}); err != nil {
			return nil, err
		}
	}
	s := &Server{Config: c, local: auth.Local(c.Environment), metrics: newMetrics(c.Runtime), exporting: semaphore.NewWeighted(4 * ingest.MaxBody)}
	s.draining, s.drain = context.WithCancel(context.Background())
	for _, e := range []Entrance{ByKey, ByFile} {
		s.by[e] = &http.Server{
			Handler:           s.handler(e),
			ReadHeaderTimeout: c.Timeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			// What it has to say is about clients that break off.
			ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		}
	}
	return s, nil
}

// Serve answers on l until Close. It closes l.
func (s *Server) Serve(l net.Listener, e Entrance) error {
	err := s.by[e].Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close tells streams to end, waits for requests in flight until ctx ends, and
// then cuts them off. Boxes run on.
func (s *Server) Close(ctx context.Context) error {
	s.drain()
	var errs []error
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
	return errors.Join(errs...)
}

const (
	defaultTimeout = 30 * time.Second
	idleTimeout    = 120 * time.Second // for the next request on a connection
	maxHeaderBytes = 56 << 10          // net/http adds 4096, and what it has read ahead
	maxBody        = 1 << 20           // of JSON (contract, section 6)
)
