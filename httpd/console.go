package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/console"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// Where the web console is. Its session's cookie is for these paths alone.
const (
	consoleRoot = "/ui"
	consolePage = consoleRoot + "/"
	consoleAPI  = consoleRoot + "/api" // the routes of the service lie below it, too
	tokenHeader = "X-Csrf-Token"       //nolint:gosec // a name
	// backgroundHeader marks requests that nobody has asked for, such as those
	// that keep a list fresh. They do not keep a session from being idle.
	backgroundHeader = "X-Background"
)

// consoleRoutes are the web console's own routes. A client of POST /ui/links proves
// who it is as on every route of the service; all others go by the session alone.
func consoleRoutes() []Route {
	return []Route{
		{Method: "POST", Pattern: "/ui/links", handle: (*Server).offerLink},
		{Method: "POST", Pattern: "/ui/session", Open: true, handle: (*Server).signIn},
		{Method: "GET", Pattern: "/ui/session", handle: (*Server).showSession},
		{Method: "DELETE", Pattern: "/ui/session", handle: (*Server).signOut},
		{Method: "DELETE", Pattern: "/ui/sessions", handle: (*Server).signOutEverywhere},
		{Method: "GET", Pattern: consoleRoot, Open: true, handle: (*Server).toPage},
		{Method: "GET", Pattern: consolePage, Open: true, handle: (*Server).page},
	}
}

// withConsole returns the handler of an entrance that has the console, too.
func (s *Server) withConsole(by Entrance, others http.HandlerFunc) http.HandlerFunc {
	own, service := s.consoleHandler(by), s.routed(BySession, consoleAPI)
	return func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.EscapedPath(); {
		case strings.HasPrefix(path, consoleAPI+"/v1/"):
			console.Secure(w.Header(), false)
			service(w, r)
		case path == consoleRoot, strings.HasPrefix(path, consolePage):
			own(w, r)
		default:
			others(w, r)
		}
	}
}

// consoleHandler returns the handler of the console's own routes. Below /ui/ all that
// is no other route is the page's.
func (s *Server) consoleHandler(by Entrance) http.HandlerFunc {
	way, paths := s.way(), map[string]node{}
	for _, r := range consoleRoutes() {
		r.name = r.Method + " " + r.Pattern
		if paths[r.Pattern] == nil {
			paths[r.Pattern] = node{"": {}}
		}
		paths[r.Pattern][""][r.Method] = &r
	}
	return func(w http.ResponseWriter, r *http.Request) {
		req := &request{Request: r, by: BySession, path: r.URL.EscapedPath()}
		n, known := paths[req.path]
		if !known {
			n = paths[consolePage]
		}
		req.route, req.allowed, req.missing = n.route(req, nil)
		if req.path == "/ui/links" {
			req.by = by
		}
		console.Secure(w.Header(), req.ofPage())
		s.start(w, req, way)
	}
}

// ofPage reports whether a request is for a file of the page.
func (r *request) ofPage() bool {
	return r.route != nil && (r.route.Pattern == consolePage || r.route.Pattern == consoleRoot)
}

// mustBeOfPage refuses a request that a page of another origin has sent. The files of
// the page are for everybody, so that a link to them can stand anywhere. Errors:
// PermissionDenied.
func (r *request) mustBeOfPage() error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		if !r.ofPage() {
			return errForeign()
		}
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 && !websocket.IsWebSocketUpgrade(r.Request) {
		return nil // no browser leaves it out where it matters
	}
	if len(origins) != 1 || !r.own(origins[0]) {
		return errForeign()
	}
	return nil
}

func errForeign() error {
	return fault.New(fault.PermissionDenied, "a page of another origin has sent this request")
}

// own reports whether an origin is that of the request's own host.
func (r *request) own(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https" || u.Scheme == "http" && r.TLS == nil)
}

// cookieName returns the name of the cookie that has the session's id. Browsers keep
// the cookies of a host's ports together: the port keeps those of its servers apart.
func (r *request) cookieName() string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "sandbox_session" + port
}

// sessionID returns the id of the request's session, or "".
func (r *request) sessionID() string {
	if cookies := r.CookiesNamed(r.cookieName()); len(cookies) == 1 { // of two, one was planted
		return cookies[0].Value
	}
	return ""
}

// signedIn returns the principal whose session the request's cookie names. Errors:
// Unauthenticated, PermissionDenied (without the token against forged requests).
func (s *Server) signedIn(r *request) (*auth.Principal, error) {
	id := r.sessionID()
	ctx, session, left, err := s.Console.Enter(r.Context(), id, r.Header.Get(backgroundHeader) != "")
	if err != nil {
		return nil, err
	}
	r.session, r.left = session, left
	if r.route != nil && r.route.Stream {
		r.Request = r.WithContext(ctx)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !console.ValidCSRF(id, r.Header.Get(tokenHeader)) {
		return nil, fault.New(fault.PermissionDenied, "the header X-CSRF-Token is missing or is not this session's")
	}
	return s.holder(session.Sub)
}

// leave ends the request's part in its session.
func (r *request) leave() {
	if r.left != nil {
		r.left()
	}
}

// holder returns the principal of a session. Errors: Unauthenticated (its key is gone).
func (s *Server) holder(sub string) (*auth.Principal, error) {
	if sub == api.LocalUser {
		return s.local, nil
	}
	p, err := s.Keys.Holder(sub)
	return p, fault.Wrap(fault.Unauthenticated, err, "the session has ended with its key")
}

// linkDocument is what a link is made of.
type linkDocument struct {
	Token     string    `json:"token"`  // works once
	Origin    string    `json:"origin"` // where a browser on this host finds the server; "" if it can't
	ExpiresAt time.Time `json:"expires_at"`
}

// offerLink makes a link that signs a browser in as the one who asks.
func (s *Server) offerLink(w http.ResponseWriter, r *request) error {
	origin := ""
	if s.Origin != nil {
		origin = s.Origin()
	}
	if origin == "" && r.by == ByFile {
		return fault.New(fault.Unavailable, "a browser can't reach this daemon, which listens on its Unix socket alone: start it with --listen 127.0.0.1:9090")
	}
	token, expiresAt := s.Console.Offer(r.principal.Sub, r.principal.ExpiresAt)
	return writeJSON(w, http.StatusCreated, linkDocument{Token: token, Origin: origin, ExpiresAt: expiresAt.UTC()})
}

// signIn begins a session with the token of a link.
func (s *Server) signIn(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	token, err := decodeToken(doc)
	if err != nil {
		return err
	}
	id, sub, err := s.Console.SignIn(token)
	if err != nil {
		return err
	}
	s.Log.LogAttrs(r.Context(), slog.LevelInfo, "signed in to the console", slog.String("request_id", r.id), slog.String("principal", sub), slog.String("remote", r.RemoteAddr))
	r.setCookie(w, id, 0)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// decodeToken reads the body of a sign-in. Errors: Malformed.
func decodeToken(doc []byte) (string, error) {
	var d struct {
		Token *string `json:"token"`
	}
	if err := document.Read(doc, &d); err != nil {
		return "", err
	}
	if d.Token == nil {
		return "", document.Malformed("token", "required", "is required")
	}
	return *d.Token, nil
}

// setCookie gives a session's id to the browser, until the browser ends, or takes it
// back if maxAge is negative.
func (r *request) setCookie(w http.ResponseWriter, id string, maxAge int) {
	http.SetCookie(w, &http.Cookie{
		Name: r.cookieName(), Value: id, Path: consoleRoot, MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https:"), // a proxy may speak TLS for us
	})
}

// sessionDocument is what the page has to know to begin.
type sessionDocument struct {
	Principal   api.Identity `json:"principal"`
	CSRF        string       `json:"csrf"`
	CreatedAt   time.Time    `json:"created_at"`
	ExpiresAt   time.Time    `json:"expires_at"`
	IdleSeconds int          `json:"idle_seconds"`
	Version     string       `json:"version"`
	Base        string       `json:"base"`
	Boxes       string       `json:"boxes"`
}

func (s *Server) showSession(w http.ResponseWriter, r *request) error {
	return writeJSON(w, http.StatusOK, sessionDocument{
		Principal: s.identity(r.principal), CSRF: console.CSRF(r.sessionID()), CreatedAt: r.session.CreatedAt.UTC(), ExpiresAt: r.session.ExpiresAt.UTC(),
		IdleSeconds: int(console.Idle / time.Second), Version: core.Version, Base: consoleAPI + "/v1", Boxes: s.base(r) + "/boxes",
	})
}

func (s *Server) signOut(w http.ResponseWriter, r *request) error {
	return r.signedOut(w, s.Console.End(r.session))
}

func (s *Server) signOutEverywhere(w http.ResponseWriter, r *request) error {
	return r.signedOut(w, s.Console.EndAll(r.principal.Sub))
}

func (r *request) signedOut(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	r.setCookie(w, "", -1)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) toPage(w http.ResponseWriter, r *request) error {
	http.Redirect(w, r.Request, consolePage, http.StatusPermanentRedirect)
	return nil
}

func (s *Server) page(w http.ResponseWriter, r *request) error {
	console.ServeFile(w, r.Request, strings.TrimPrefix(r.URL.Path, consolePage))
	return nil
}
