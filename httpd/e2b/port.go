package e2b

import (
	"context"
	"net"
	"net/http"
	"strconv"

	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/httpd/proxy"
)

// The ports of a box at which SDKs look for what this server answers itself.
const (
	insidePort = "49983"
	codePort   = "49999"
)

// newProxy returns what passes requests on to programs in boxes.
func (s *Server) newProxy() *proxy.Proxy {
	return proxy.New(func(ctx context.Context, box string, port int) (net.Conn, error) {
		return s.Runtime.At(box).Connect(ctx, port)
	})
}

// hosts passes the requests for hosts of the form PORT-ID.DOMAIN on to the program on
// that port of the box, and all others to next.
func (s *Server) hosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		port, id := hostOf(r.Host)
		if id == "" || port == insidePort || port == codePort {
			next.ServeHTTP(w, r)
			return
		}
		s.answeredInside(func(w http.ResponseWriter, r *http.Request) error { return s.toPort(w, r, id, port) }).ServeHTTP(w, r)
	})
}

// toPort passes a request on. Errors: Unauthenticated, BoxNotFound, InvalidArgument,
// Unavailable (the server ends), and those of the program's side; of the last two the
// answer may have begun.
func (s *Server) toPort(w http.ResponseWriter, r *http.Request, id, text string) error {
	port, err := strconv.Atoi(text)
	if err != nil {
		return fault.New(fault.InvalidArgument, "%.20q is no port", text)
	}
	if err := options.CheckPort(port); err != nil {
		return err
	}
	rec, err := s.Runtime.Find(r.Context(), id)
	if err != nil {
		return err
	}
	if rec.Options.Labels[trafficLabel] != public && !s.admits(r, id) {
		return fault.New(fault.Unauthenticated, "the ports of sandbox %s need its token: send %s", id, trafficHeader)
	}
	if _, err := s.awake(r.Context(), id); err != nil {
		return err
	}
	r.Header.Del(accessHeader)
	r.Header.Del(trafficHeader)
	ctx, cancel := s.streaming(r.Context())
	defer cancel()
	err = s.proxy.Serve(w, r.WithContext(ctx), proxy.Target{Box: id, Port: port, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery})
	switch {
	case !fault.Is(err, fault.Canceled):
		return err
	case r.Context().Err() != nil: // nobody is left to tell
		return nil
	}
	return errEnds()
}

// errEnds is what a request is answered that the end of the server breaks off.
func errEnds() error { return fault.New(fault.Unavailable, "the service ends: come again") }
