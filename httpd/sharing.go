package httpd

import (
	"context"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/httpd/proxy"
	"sandbox/httpd/share"
)

// shareBox makes a link that leads people without a key to a port of a box. The box
// need not run yet.
func (s *Server) shareBox(w http.ResponseWriter, r *request) error {
	port, seconds, err := r.sharing(w)
	if err != nil {
		return err
	}
	if s.Shares == nil {
		return fault.New(fault.Unavailable, "this server makes no links to ports")
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	origin, err := s.originOf(r)
	if err != nil {
		return err
	}
	g := share.Grant{Box: box.ID(), Port: port, Until: time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)}
	return writeJSON(w, http.StatusCreated, api.Share{URL: s.link(origin, g), BoxID: g.Box, Port: port, ExpiresAt: g.Until.UTC()})
}

// sharing reads what a link shall be. Errors: Malformed, InvalidArgument.
func (r *request) sharing(w http.ResponseWriter) (port, seconds int, err error) {
	var body struct {
		Port    *int `json:"port"`
		Seconds *int `json:"expires_in_seconds"`
	}
	var p document.Problems
	if err := r.members(w, &p, &body); err != nil {
		return 0, 0, err
	}
	seconds = api.DefaultShareSeconds
	if body.Seconds != nil {
		seconds = *body.Seconds
		p.Within("expires_in_seconds", seconds, 1, api.MaxShareSeconds)
	}
	if p.Unread(body.Port == nil, "port", "required", "is required"); body.Port != nil {
		port = *body.Port
		p.Within("port", port, 1, options.MaxPort)
	}
	return port, seconds, p.Err(fault.InvalidArgument)
}

// origin is a scheme and a host, with its port.
type origin struct{ scheme, host string }

// originOf returns where the client of a request finds this server; for one of the Unix
// socket, where a browser on this host does. Errors: Unavailable.
func (s *Server) originOf(r *request) (origin, error) {
	if r.by != ByFile {
		o := origin{"http", r.Host}
		if r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https:") || r.Header.Get("X-Forwarded-Proto") == "https" { // a proxy may speak TLS for us
			o.scheme = "https"
		}
		return o, nil
	}
	text := ""
	if s.Origin != nil {
		text = s.Origin()
	}
	scheme, host, ok := strings.Cut(text, "://")
	if !ok {
		return origin{}, fault.New(fault.Unavailable, "a browser can't reach this daemon, which listens on its Unix socket alone: start it with --listen 127.0.0.1:9090")
	}
	return origin{scheme, host}, nil
}

// link returns the address of a grant.
func (s *Server) link(o origin, g share.Grant) string {
	token := s.Shares.Sign(g)
	if s.PortDomain == "" {
		return o.scheme + "://" + o.host + path.Join("/", map[bool]string{true: "api"}[s.Hosted], "v1/shares", token) + "/"
	}
	host := strconv.Itoa(g.Port) + "-" + strings.TrimPrefix(g.Box, string(ids.Box)) + "." + s.PortDomain
	if _, port, err := net.SplitHostPort(o.host); err == nil {
		host = net.JoinHostPort(host, port)
	}
	return o.scheme + "://" + host + "/?" + shareName + "=" + token
}

// shareName is the name of the cookie that holds a token, and of the member of a query
// that sets it.
const shareName = proxy.CookiePrefix + "share"

// toShare passes a request on to the program that its link leads to.
func (s *Server) toShare(w http.ResponseWriter, r *request) error {
	g, err := s.granted(r.param("token"))
	if err != nil {
		return err
	}
	return s.passGranted(w, r, g, proxy.Target{
		Path: "/" + r.rest, Prefix: strings.TrimSuffix(r.URL.EscapedPath(), "/"+r.rest), Query: r.URL.RawQuery,
	})
}

// toShareRoot sends a client to the path of a link with a slash at its end.
func (s *Server) toShareRoot(w http.ResponseWriter, r *request) error {
	if _, err := s.granted(r.param("token")); err != nil {
		return err
	}
	r.addSlash(w)
	return nil
}

// granted returns what a token allows. Errors: PermissionDenied, Unavailable.
func (s *Server) granted(token string) (share.Grant, error) {
	if s.Shares == nil {
		return share.Grant{}, fault.New(fault.Unavailable, "this server makes no links to ports")
	}
	return s.Shares.Check(token, time.Now())
}

// passGranted passes a request on until its grant ends. A key of this service that the
// client sends all the same does not reach the program.
func (s *Server) passGranted(w http.ResponseWriter, r *request, g share.Grant, to proxy.Target) error {
	rec, err := s.Runtime.Find(r.Context(), g.Box)
	if err != nil {
		return err
	}
	if secret := r.secret(); secret != "" {
		_, unknown := s.Keys.Verify(strings.TrimSpace(secret))
		to.Key = unknown == nil
	}
	ctx, cancel := context.WithDeadline(r.Context(), g.Until)
	defer cancel()
	until := *r
	until.Request = r.WithContext(ctx)
	to.Port = g.Port
	err = s.pass(w, &until, rec, to)
	if r.Context().Err() == nil && ctx.Err() != nil {
		return share.Ended()
	}
	return err
}
