package httpd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"sandbox/auth"
	"sandbox/core/fault"
	"sandbox/httpd/linger"
)

// handle is one step of the way that a request goes, or its end. It writes the
// reply if it succeeds and returns the failure if not; only answered writes
// failures.
type handle func(w *reply, r *request) error

// way returns the steps that every request goes through, outermost first.
func (s *Server) way() handle {
	return s.limited(s.recovered(s.identified(s.logged(s.answered(s.authorized(s.handled))))))
}

// handler returns the handler of an entrance.
func (s *Server) handler(by Entrance) http.Handler {
	routes := s.routed(by, "")
	if s.Console != nil {
		routes = s.withConsole(by, routes)
	}
	if s.PortDomain != "" {
		routes = s.withPortHosts(by, routes)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if headSize(r) > maxHead { // and so close to it that net/http let it pass
			w.Header().Set("Connection", "close")
			http.Error(w, "431 Request Header Fields Too Large", http.StatusRequestHeaderFieldsTooLarge)
			return
		}
		routes(w, r)
	})
}

// routed returns the handler of the routes below a path. It finds the route first,
// because all steps depend on it. Whether there is one is told to authorized clients
// only.
func (s *Server) routed(by Entrance, below string) http.HandlerFunc {
	way := s.way()
	begun := func(r *http.Request) *request {
		return &request{Request: r, by: by, path: strings.TrimPrefix(r.URL.EscapedPath(), below)}
	}
	routes := newTable(s.Prefix, func(n node) httprouter.Handle {
		return func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
			req := begun(r)
			req.route, req.allowed, req.missing = n.route(req, params)
			s.start(w, req, way)
		}
	})
	return func(w http.ResponseWriter, r *http.Request) {
		req := begun(r)
		handle, params, misplaced := s.lookUp(routes, req.path, by)
		if handle != nil {
			handle(w, r, params)
			return
		}
		req.missing, req.misplaced = errNoRoute(req), misplaced
		s.start(w, req, way)
	}
}

// start sends a request on its way.
func (s *Server) start(w http.ResponseWriter, r *request, way handle) {
	s.inFlight.Add(1)
	defer s.inFlight.Done()
	if r.observability = s.underObservability(r.path); r.observability {
		w.Header().Set("Cache-Control", "private, no-store")
	}
	out := &reply{ResponseWriter: w, timeout: s.Timeout}
	if r.route != nil && r.route.Stream {
		out.timeout = 0
	}
	_ = way(out, r) // answered has written the failure
	if r.socket != nil {
		s.linger(r.socket)
	}
}

// headSize returns how many bytes the request line and the headers of a request
// have: all but the space around values, which net/http drops.
func headSize(r *http.Request) int {
	size := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len("  \r\n") + len("Host: \r\n") + len(r.Host) + len("\r\n")
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	return size
}

// recovered answers a panic with an internal error, so that one request can't end
// the others.
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

// requestID is the name of the header, in the canonical form that [http.Header]
// uses as its key.
const requestID = "X-Request-Id"

// identified sets the id of the request: the client's if that is a UUID, else a
// new one.
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

// logged writes a line to the log for every request, and counts it in the metrics.
// The query, the headers and the body are left out: they could hold a secret.
func (s *Server) logged(next handle) handle {
	return func(w *reply, r *request) error {
		start := time.Now()
		defer func() {
			took := time.Since(start)
			status := w.status
			if status == 0 { // a panic, which recovered will answer
				status = http.StatusInternalServerError
			}
			s.figures.count(r.route, status, took)
			s.log(r, status, w.bytes, took)
		}()
		return next(w, r)
	}
}

func (s *Server) log(r *request, status int, bytes int64, took time.Duration) {
	level := slog.LevelInfo
	if r.route != nil && r.route.Open && !r.route.Program {
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
		slog.String("request_id", r.id), slog.String("method", brief(r.Method)), slog.String("path", r.told()),
		slog.Int("status", status), slog.Int64("bytes", bytes), slog.Duration("took", took),
		slog.String("principal", who), slog.String("remote", r.RemoteAddr))
}

// told returns the path of a request as the log may have it: without the token of a
// link, which lets in who has it.
func (r *request) told() string {
	path := r.URL.Path
	if token := r.params.ByName("token"); token != "" {
		path = strings.Replace(path, token, "TOKEN", 1)
	}
	return brief(path)
}

// answered writes the failure that the steps behind it return.
func (s *Server) answered(next handle) handle {
	return func(w *reply, r *request) error {
		if err := next(w, r); err != nil {
			s.fail(w, r, err)
		}
		return nil
	}
}

// limited bounds how long the client may take to send the body, and drops what no
// handler has read of it once the reply is sent. Without a bound net/http would wait
// for the rest for ever. A program in a box sets the pace of its own clients.
func (s *Server) limited(next handle) handle {
	return func(w *reply, r *request) error {
		if r.ContentLength == 0 {
			return next(w, r)
		}
		b := &timedBody{Reader: r.Body, control: w.control(), http: r.ProtoMajor, timeout: s.Timeout, renew: w.timeout == 0}
		if r.route == nil || !r.route.Program {
			b.bound = true
			b.extend(s.Timeout)
		}
		r.Body, w.body = b, b
		err := next(w, r)
		if w.body != nil {
			w.body.drop(w.ResponseWriter)
		}
		return err
	}
}

// timedBody is a body with a deadline, either for the whole of it or, in a stream,
// for each piece.
type timedBody struct {
	io.Reader
	control *http.ResponseController
	http    int // the version of HTTP
	timeout time.Duration
	bound   bool        // there is a deadline
	renew   bool        // the deadline is for each piece
	early   bool        // the reply does not wait for the rest
	whole   atomic.Bool // the body was read to its end; a proxy reads beside its handler
}

// Close does nothing: net/http closes what is below, and the rest may have to be
// dropped before. The transport of a proxy closes a body that it can't send.
func (b *timedBody) Close() error { return nil }

func (b *timedBody) extend(d time.Duration) {
	_ = b.control.SetReadDeadline(time.Now().Add(d)) // not every connection has any
}

func (b *timedBody) Read(p []byte) (int, error) {
	if b.bound && b.renew {
		b.extend(b.timeout)
	}
	n, err := b.Reader.Read(p)
	if err == io.EOF { // readers return it unwrapped
		b.whole.Store(true)
		if b.bound { // otherwise the deadline would end the request while it is answered
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// lingering bounds how long net/http waits for the rest of a body that no handler
// has read, where it waits before it sends the reply.
const lingering = time.Second

// giveUp is called before the reply w begins. If the body was not read, the reply does
// not wait for the rest, or only for a short time.
func (b *timedBody) giveUp(w http.ResponseWriter, status int) {
	if b.whole.Load() {
		return
	}
	if b.early = linger.Answer(w, b.http, status >= http.StatusBadRequest); !b.early && b.bound {
		b.extend(min(lingering, b.timeout/2))
	}
}

// drop reads the rest of a body whose reply did not wait for it.
func (b *timedBody) drop(w http.ResponseWriter) {
	if b.early {
		linger.Drop(w, b.Reader, min(linger.Quiet, b.timeout/2), b.timeout)
	}
}

// authorized refuses requests without a live key or without the permission that
// the route needs. It answers for routes that do not exist, too, so that only a
// client with a key learns which ones do.
func (s *Server) authorized(next handle) handle {
	return func(w *reply, r *request) error {
		if r.misplaced {
			return r.missing
		}
		if r.by == BySession {
			if err := r.mustBeOfPage(); err != nil {
				return err
			}
			if r.route != nil && r.route.Program {
				r.missing = errNoRoute(r)
			}
		}
		if r.route != nil && r.route.Open && r.missing == nil {
			return next(w, r)
		}
		defer r.leave()
		var err error
		if r.principal, err = s.principal(r); err != nil {
			return err
		}
		if r.missing != nil {
			return r.missing
		}
		if err := s.permitted(r, r.route.Permission); err != nil {
			return err
		}
		return next(w, r)
	}
}

// permitted refuses a principal without a permission. Errors: PermissionDenied.
func (s *Server) permitted(r *request, permission string) error {
	if !r.principal.May(permission) {
		return fault.New(fault.PermissionDenied, "the key lacks the permission %s", permission)
	}
	if !r.principal.In(permission, s.Environment) {
		return fault.New(fault.PermissionDenied, "the key is for another environment than this server's, which is %s", s.Environment)
	}
	return nil
}

// principal returns the principal of the request. Errors: Unauthenticated.
func (s *Server) principal(r *request) (*auth.Principal, error) {
	switch r.by {
	case ByFile:
		return s.local, nil
	case BySession:
		return s.signedIn(r)
	}
	secret := r.secret()
	if secret == "" {
		return nil, fault.New(fault.Unauthenticated, "no API key: send the header Authorization: Bearer KEY")
	}
	return s.Keys.Verify(strings.TrimSpace(secret))
}

// handled is the end of the way: the route's own handler.
func (s *Server) handled(w *reply, r *request) error { return r.route.handle(s, w, r) }

// cut breaks the connection of a reply that can't be finished, so that the client
// does not take it for complete.
func (s *Server) cut(w *reply, r *request) {
	w.body = nil // nothing of it can be read any more
	if conn, _, err := w.control().Hijack(); err == nil {
		_ = conn.Close()
		return
	}
	// HTTP/2 can't be hijacked, and a WebSocket has been already.
	_ = w.control().SetWriteDeadline(time.Unix(1, 0))
	s.Log.LogAttrs(r.Context(), slog.LevelDebug, "a reply was cut off", slog.String("request_id", r.id), slog.String("status", fmt.Sprint(w.status)))
}
