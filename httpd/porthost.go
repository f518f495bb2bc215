package httpd

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/httpd/proxy"
	"sandbox/httpd/share"
)

// hostRoute is the route of all hosts of ports. It is in no table, since it has no
// path of its own. Who may use it is looked at where the request is passed on.
var hostRoute = Route{Method: anyVerb, Pattern: "PORT-BOX", Open: true, Stream: true, Program: true, handle: (*Server).toPortHost, name: "ports by host"}

// withPortHosts returns the handler of an entrance that has the hosts of ports, too.
func (s *Server) withPortHosts(by Entrance, others http.HandlerFunc) http.HandlerFunc {
	way := s.way()
	return func(w http.ResponseWriter, r *http.Request) {
		label, ok := s.portLabel(r.Host)
		if !ok {
			others(w, r)
			return
		}
		req := &request{Request: r, by: by, path: r.URL.EscapedPath(), route: &hostRoute}
		if req.grant, ok = parseLabel(label); !ok {
			req.missing = fault.New(fault.NotFound, "no host %q: want PORT-BOX.%s", brief(r.Host), s.PortDomain)
		}
		s.start(w, req, way)
	}
}

// portLabel returns the part of a host before the domain of ports, which all hosts of
// that domain but itself have.
func (s *Server) portLabel(host string) (string, bool) {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.CutSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), "."+s.PortDomain)
}

// parseLabel reads PORT-BOX, where BOX is a box's id or what is behind its prefix.
func parseLabel(label string) (g share.Grant, ok bool) {
	text, box, _ := strings.Cut(label, "-")
	port, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(port) != text || options.CheckPort(port) != nil {
		return g, false
	}
	if !ids.Box.Prefixes(box) {
		box = string(ids.Box) + box
	}
	return share.Grant{Box: box, Port: port}, ids.Box.Valid(box)
}

// toPortHost passes a request on to the program that its host names, for who has a link
// or a key.
func (s *Server) toPortHost(w http.ResponseWriter, r *request) error {
	to := proxy.Target{Port: r.grant.Port, Path: r.path, Query: withoutToken(r.URL.RawQuery)}
	if !strings.HasPrefix(to.Path, "/") { // as of OPTIONS *
		to.Path = "/"
	}
	token, asked := r.token()
	if token == "" {
		return s.toPortByKey(w, r, to)
	}
	g, err := s.granted(token)
	if err != nil {
		return err
	}
	if g.Box != r.grant.Box || g.Port != r.grant.Port {
		return fault.New(fault.PermissionDenied, "this link is for another port")
	}
	if asked && r.forPage() {
		r.keepToken(w, token, g, to)
		return nil
	}
	return s.passGranted(w, r, g, to)
}

// toPortByKey passes on a request of who has a key, or comes through the Unix socket.
func (s *Server) toPortByKey(w http.ResponseWriter, r *request, to proxy.Target) (err error) {
	if r.principal, err = s.principal(r); err != nil {
		return err
	}
	if err := s.permitted(r, api.MayUseBoxes); err != nil {
		return err
	}
	rec, err := s.Runtime.Find(r.Context(), r.grant.Box)
	if err != nil {
		return err
	}
	to.Key = r.by == ByKey
	return s.pass(w, r, rec, to)
}

// token returns the token of a link that a request has, or "", and whether it is in the
// address and not in a cookie.
func (r *request) token() (token string, asked bool) {
	for member := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if value, ok := strings.CutPrefix(member, shareName+"="); ok {
			token, _ = url.QueryUnescape(value) // what can't be unescaped is no token
			return token, true
		}
	}
	if cookies := r.CookiesNamed(shareName); len(cookies) == 1 { // of two, one was planted
		return cookies[0].Value, false
	}
	return "", false
}

// withoutToken returns a query without the token of a link.
func withoutToken(query string) string {
	var kept []string
	for member := range strings.SplitSeq(query, "&") {
		if !strings.HasPrefix(member, shareName+"=") {
			kept = append(kept, member)
		}
	}
	return strings.Join(kept, "&")
}

// forPage reports whether a browser asks for a page, and not a program for data.
func (r *request) forPage() bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// keepToken gives the token to a browser as a cookie of this host alone, and sends it to
// the address without the token, so that no page and no log has it.
func (r *request) keepToken(w http.ResponseWriter, token string, g share.Grant, to proxy.Target) {
	http.SetCookie(w, &http.Cookie{
		Name: shareName, Value: token, Path: "/", Expires: g.Until, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https", // a proxy may speak TLS for us
	})
	address := "/" + strings.TrimLeft(to.Path, "/") // two slashes would begin with another host
	if to.Query != "" {
		address += "?" + to.Query
	}
	w.Header().Set("Location", address)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}
