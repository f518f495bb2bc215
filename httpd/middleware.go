package httpd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"sandbox/auth"
	"sandbox/core/fault"
)

// handle is a part of a request's way, or its end. It writes a success or
// returns the failure; only answered writes a failure.
type handle func(w *reply, r *request) error

// way is what every request goes through, outermost first.
func (s *Server) way() handle {
	return s.recovered(s.identified(s.logged(s.answered(s.limited(s.authorized(s.handled))))))
}

// handler is the way in from an entrance. The route is found first, because
// the rest depends on it, but nobody hears of it before authorized.
func (s *Server) handler(by Entrance) http.Handler {
	way := s.way()
	start := func(w http.ResponseWriter, r *request) {
		s.inFlight.Add(1)
		defer s.inFlight.Done()
		r.by = by
		if r.observability = s.underObservability(r.URL.EscapedPath()); r.observability {
			w.Header().Set("Cache-Control", "private, no-store")
		}
		out := &reply{ResponseWriter: w, timeout: s.Timeout}
		if r.route != nil && r.route.Stream {
			out.timeout = 0
		}
		_ = way(out, r) // answered has written it
	}
	routes := newTable(s.Prefix, func(n node) httprouter.Handle {
		return func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
			req := &request{Request: r}
			req.route, req.allowed, req.missing = n.route(req, params)
			start(w, req)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle, params, misplaced := s.lookUp(routes, r.URL.EscapedPath(), by)
		if handle != nil {
			handle(w, r, params)
			return
		}
		req := &request{Request: r, misplaced: misplaced}
		req.missing = errNoRoute(req)
		start(w, req)
	})
}

// recovered turns a panic into a failure of ours, so that one request can't
// end the others.
func (s *Server) recovered(next handle) handle {
	return func(w *reply, r *request) (err error) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			s.Log.LogAttrs(r.Context(), slog.LevelError, "panic",
				slog.String("request_id", r.id), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			s.fail(w, r, fault.New(fault.Internal, "panic: %v", v))
		}()
		return next(w, r)
	}
}

// requestID is in the canonical form of headers.
const requestID = "X-Request-Id"

// identified returns the request its id: the client's if it is a UUID.
func (s *Server) identified(next handle) handle {
	return func(w *reply, r *request) error {
		r.id = r.Header.Get(requestID)
		if len(r.id) != len(uuid.UUID{}.String()) || uuid.Validate(r.id) != nil {
			r.id = uuid.NewString()
		}
		w.Header()[requestID] = []string{r.id}
		return next(w, r)
	}
}

// logged writes a line for every request, and counts it. What could hold a
// secret (query, headers, bodies) is left out.
func (s *Server) logged(next handle) handle {
	return func(w *reply, r *request) error {
		start := time.Now()
		defer func() {
			took := time.Since(start)
			status := w.status
			if status == 0 { // a panic, which recovered answers
				status = http.StatusInternalServerError
			}
			s.metrics.count(r.route, status, took)
			s.log(r, status, w.bytes, took)
		}()
		return next(w, r)
	}
}

func (s *Server) log(r *request, status int, bytes int64, took time.Duration) {
	level := slog.LevelInfo
	if r.route != nil && r.route.Open {
		level = slog.LevelDebug // health checks come all the time
	}
	if !s.Log.Enabled(context.Background(), level) {
		return
	}
	who := ""
	if r.principal != nil {
		who = r.principal.Sub
	}
	s.Log.LogAttrs(context.Background(), level, "request",
		slog.String("request_id", r.id), slog.String("method", brief(r.Method)), slog.String("path", brief(r.URL.Path)),
		slog.Int("status", status), slog.Int64("bytes", bytes), slog.Duration("took", took),
		slog.String("principal", who), slog.String("remote", r.RemoteAddr))
}

// answered writes the failure of what comes behind it.
func (s *Server) answered(next handle) handle {
	return func(w *reply, r *request) error {
		if err := next(w, r); err != nil {
			s.fail(w, r, err)
		}
		return nil
	}
}

// limited bounds how long a body may take. Without it, net/http would wait for
// ever for the rest of a body, also of one that nobody reads.
func (s *Server) limited(next handle) handle {
	return func(w *reply, r *request) error {
		if r.ContentLength != 0 {
			b := &timedBody{ReadCloser: r.Body, control: w.control(), timeout: s.Timeout, renew: w.timeout == 0}
			b.extend(s.Timeout)
			r.Body, w.body = b, b
		}
		return next(w, r)
	}
}

// timedBody is a body with a deadline: for the whole of it, or renewed with
// every piece.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	timeout time.Duration
	renew   bool
	whole   bool // EOF was read
}

func (b *timedBody) extend(d time.Duration) {
	_ = b.control.SetReadDeadline(time.Now().Add(d)) // not every connection has any
}

func (b *timedBody) Read(p []byte) (int, error) {
	if b.renew {
		b.extend(b.timeout)
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { // as it is: readers return it bare
		// Or the deadline would end the request while it is being answered.
		b.whole = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// lingering is how long net/http may wait for the rest of a body that nobody
// read: it does so before it sends the answer.
const lingering = time.Second

// giveUp shortens the wait for a body that is answered without being read.
func (b *timedBody) giveUp() {
	if !b.whole {
		b.extend(min(lingering, b.timeout/2))
	}
}

// authorized lets through who may. Only after it does a client learn whether
// there is such a route.
func (s *Server) authorized(next handle) handle {
	return func(w *reply, r *request) error {
		if r.misplaced {
			return r.missing
		}
		if r.route != nil && r.route.Open {
			return next(w, r)
		}
		var err error
		if r.principal, err = s.principal(r); err != nil {
			return err
		}
		if r.missing != nil {
			return r.missing
		}
		if !r.principal.May(r.route.Permission) {
			return fault.New(fault.PermissionDenied, "the key lacks the permission %s", r.route.Permission)
		}
		if !r.principal.In(r.route.Permission, s.Environment) {
			return fault.New(fault.PermissionDenied, "the key is for another environment than this server's, which is %s", s.Environment)
		}
		return next(w, r)
	}
}

// principal returns who the request comes from. Errors: Unauthenticated.
func (s *Server) principal(r *request) (*auth.Principal, error) {
	if r.by == ByFile {
		return s.local, nil
	}
	secret := r.secret()
	if secret == "" {
		return nil, fault.New(fault.Unauthenticated, "no API key: send the header Authorization: Bearer KEY")
	}
	return s.Keys.Verify(strings.TrimSpace(secret))
}

// handled is the end of the way.
func (s *Server) handled(w *reply, r *request) error { return r.route.handle(s, w, r) }

// cut breaks the connection of a reply that can't be finished, so that the
// client does not take it for whole.
func (s *Server) cut(w *reply, r *request) {
	if conn, _, err := w.control().Hijack(); err == nil {
		_ = conn.Close()
		return
	}
	// HTTP/2, or a WebSocket that has the connection already.
	_ = w.control().SetWriteDeadline(time.Unix(1, 0))
	s.Log.LogAttrs(r.Context(), slog.LevelDebug, "reply cut off", slog.String("request_id", r.id), slog.String("status", fmt.Sprint(w.status)))
}
