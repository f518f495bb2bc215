package httpd_test

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/httpd"
)

// session sends the cookie of a browser with a request, and its token.
func (b *browser) session(r *http.Request) {
	r.AddCookie(&http.Cookie{Name: b.cookie.Name, Value: b.cookie.Value})
	r.Header.Set("X-CSRF-Token", b.csrf)
	r.Header.Set("Origin", b.root())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
}

// TestCookieOutside shows the cookie of a session to all that is not below /ui/api, in
// every place where a key could stand, and wants it to be as good as nothing.
func TestCookieOutside(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*httpd.Config){
		"plain":  func(*httpd.Config) {},
		"prefix": func(c *httpd.Config) { c.Prefix = "team" },
		"hosted": func(c *httpd.Config) { c.Hosted = true },
	} {
		s := startConsole(t, change)
		b := s.signIn(s.key)
		id, before := b.newBox(), s.state()
		ways := map[string]func(*http.Request){
			"cookie":      func(*http.Request) {},
			"key":         bearer(b.cookie.Value),
			"token":       bearer(b.csrf),
			"subprotocol": header("Sec-WebSocket-Protocol", "sandbox.v1, bearer."+b.cookie.Value),
		}
		for _, route := range httpd.Routes() {
			for _, path := range outside(route.Pattern, id) {
				for way, change := range ways {
					a := s.send(s.client, s.root(), route.Method, path, "", b.session, change)
					if a.status != 401 && a.status != 404 && !route.Open {
						t.Errorf("%s: %s %s with the %s: %d %s", name, route.Method, path, way, a.status, a.text)
					}
				}
			}
		}
		s.send(s.client, s.root(), "POST", "/ui/links", "", b.session).want(t, 401, "unauthenticated")
		if after := s.state(); after != before {
			t.Errorf("%s: the state has changed: before\n%s\nafter\n%s", name, before, after)
		}
	}
}

// outside returns the places of a route that are not the console's, and some that
// are nowhere.
func outside(pattern, id string) []string {
	path := strings.Replace(fill(pattern, id), "{reference}", "nosuch", 1)
	return []string{path, "/api" + path, strings.Replace(path, "/v1/", "/v1/team/", 1), "/uix" + path, "/UI/api" + path, "/ui%2fapi" + path, "//ui/api" + path}
}

// newBox makes a box and returns its id.
func (b *browser) newBox() string {
	b.t.Helper()
	boxes, _ := b.get("/ui/session").json["boxes"].(string)
	id, _ := b.do("POST", boxes, `{}`).want(b.t, 201, "").json["id"].(string)
	return id
}

// TestConsoleHasAllRoutes wants a session to reach each route of the service, as its
// key does, and to lack the same ones.
func TestConsoleHasAllRoutes(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	all, none := s.signIn(s.key), s.signIn(s.onlyKey(api.MayWriteLogs))
	for _, route := range httpd.Routes() {
		path, denied := "/ui/api"+fill(route.Pattern, "nosuch"), "permission_denied"
		if !strings.HasPrefix(route.Pattern, "/v1/") { // for other programs than browsers
			all.do(route.Method, path, "").want(t, map[bool]int{true: 404, false: 405}[route.Method == "GET"], "")
			continue
		}
		if route.Program { // its pages would have the console's host
			all.do(route.Method, path, "").want(t, 404, "not_found")
			continue
		}
		if a := all.do(route.Method, path, ""); a.code() == "not_found" || a.status == 405 || a.status == 401 || a.status == 403 {
			t.Errorf("%s %s: %d %s", route.Method, path, a.status, a.text)
		}
		if route.Permission != "" && route.Permission != api.MayWriteLogs {
			if route.Method == "HEAD" { // it has no body
				denied = ""
			}
			none.do(route.Method, path, "").want(t, 403, denied)
		}
	}
}

// TestForged sends requests with the session's cookie that the page did not send, to
// every route, and wants nothing to come of them.
func TestForged(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	b, other := s.signIn(s.key), s.signIn(s.key)
	id := b.newBox()
	before := s.state()
	without := map[string]func(*http.Request){
		"no token":           func(r *http.Request) { r.Header.Del("X-CSRF-Token") },
		"another's token":    header("X-CSRF-Token", other.csrf),
		"the id for a token": header("X-CSRF-Token", b.cookie.Value),
		"half a token":       header("X-CSRF-Token", b.csrf[:20]),
		"one in the query":   func(r *http.Request) { r.Header.Del("X-CSRF-Token"); r.URL.RawQuery = "csrf=" + b.csrf },
	}
	foreign := map[string]func(*http.Request){
		"another site":      header("Sec-Fetch-Site", "cross-site"),
		"another port":      header("Sec-Fetch-Site", "same-site"),
		"rubbish":           header("Sec-Fetch-Site", "x"),
		"another origin":    header("Origin", "http://evil.test"),
		"another port's":    header("Origin", "http://127.0.0.1:1"),
		"an origin to come": header("Origin", b.root()+"0"),
		"no origin at all":  header("Origin", "null"),
		"a file":            header("Origin", "file://"),
		"another scheme":    header("Origin", strings.Replace(b.root(), "http", "ftp", 1)),
		"two origins":       func(r *http.Request) { r.Header["Origin"] = []string{b.root(), b.root()} },
	}
	routes := append(httpd.Routes(), httpd.Route{Method: "GET", Pattern: "/session"}, httpd.Route{Method: "POST", Pattern: "/session"},
		httpd.Route{Method: "DELETE", Pattern: "/session"}, httpd.Route{Method: "DELETE", Pattern: "/sessions"})
	for _, route := range routes {
		path := "/ui/api" + fill(route.Pattern, id)
		if own := strings.HasPrefix(route.Pattern, "/session"); own {
			path = "/ui" + route.Pattern
		} else if !strings.HasPrefix(route.Pattern, "/v1/") {
			continue
		}
		for name, change := range foreign {
			if a := b.do(route.Method, path, "", change); a.status != 403 {
				t.Errorf("%s %s from %s: %d %s", route.Method, path, name, a.status, a.text)
			}
		}
		for name, change := range without {
			if route.Method == "GET" || route.Method == "HEAD" || route.Method+path == "POST/ui/session" {
				continue
			}
			if a := b.do(route.Method, path, "", change); a.status != 403 {
				t.Errorf("%s %s with %s: %d %s", route.Method, path, name, a.status, a.text)
			}
		}
	}
	b.get("/ui/session").want(t, 200, "")
	if after := s.state(); after != before {
		t.Errorf("the state has changed: before\n%s\nafter\n%s", before, after)
	}
}

// TestConsoleSocketOrigin opens terminals from pages of several origins.
func TestConsoleSocketOrigin(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	b := s.signIn(s.key)
	id := b.newBox()
	for _, tt := range []struct {
		origin string
		status int
	}{
		{b.root(), 101},
		{strings.Replace(b.root(), "http:", "https:", 1), 101}, // a proxy speaks TLS
		{"", 403},
		{"null", 403},
		{"http://evil.test", 403},
		{b.root() + ".evil.test", 403},
		{"http://127.0.0.1:1", 403},
	} {
		conn, status := b.dial("/ui/api/v1/boxes/"+id+"/attach?shell=/bin/sh", tt.origin)
		if status != tt.status {
			t.Errorf("origin %q: %d, want %d", tt.origin, status, tt.status)
		}
		if conn != nil {
			check(t, conn.Close())
		}
	}
}

// dial opens a WebSocket as a page of an origin does.
func (b *browser) dial(path, origin string) (*websocket.Conn, int) {
	b.t.Helper()
	head := http.Header{"Cookie": {b.cookie.Name + "=" + b.cookie.Value}}
	if origin != "" {
		head.Set("Origin", origin)
	}
	d := websocket.Dialer{Subprotocols: []string{"sandbox.v1"}}
	conn, resp, err := d.DialContext(b.t.Context(), "ws"+strings.TrimPrefix(b.root(), "http")+path, head)
	if resp == nil {
		b.t.Fatal(err)
	}
	return conn, resp.StatusCode
}

// TestSessionEndsWithKey wants the sessions of a key to end when it is deleted, at once
// and with what is open.
func TestSessionEndsWithKey(t *testing.T) {
	t.Parallel()
	left := make(chan struct{}) // closed when the terminal's request has ended
	s := startConsole(t, func(c *httpd.Config) {
		c.Log = slog.New(slog.NewJSONHandler(lines(func(line string) {
			if strings.Contains(line, `/ui/api`) && strings.Contains(line, `/attach"`) {
				close(left)
			}
		}), nil))
	})
	k, secret, err := s.keys.Create(t.Context(), auth.Local("default"), auth.Request{Name: "ends", Permissions: api.Permissions(), Environment: "default"})
	must(t, err)
	b, other, local := s.signIn(secret), s.signIn(s.key), s.signIn("")
	offered := s.link(secret)
	box := b.newBox()
	conn, _ := b.dial("/ui/api/v1/boxes/"+box+"/attach?shell=/bin/sh", b.root())
	c := &shown{Conn: conn, t: t}
	must(t, conn.ReadJSON(&c.ready))
	other.do("DELETE", "/ui/api/v1/keys/"+k.ID, "").want(t, 200, "")
	for _, path := range []string{"/ui/session", "/ui/api/v1/me"} {
		b.get(path).want(t, 401, "unauthenticated")
		other.get(path).want(t, 200, "")
		local.get(path).want(t, 200, "")
	}
	s.send(s.client, s.root(), "POST", "/ui/session", `{"token":"`+offered+`"}`).want(t, 401, "unauthenticated")
	must(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	if c.rest(); c.last["code"] != "unauthenticated" {
		t.Errorf("the terminal ended with %v", c.last)
	}
	check(t, conn.Close())
	<-left
	// The shell waits for the next session, as what else runs in the box does.
	again := s.attach("/v1/boxes/"+box+"/exec/"+c.ready.ExecID, "")
	again.typ("exit 7\n")
	if again.rest(); again.last["exit_code"] != 7.0 {
		t.Errorf("the shell ended with %v", again.last)
	}
}

// lines is a log that calls back with each line.
type lines func(string)

func (l lines) Write(p []byte) (int, error) { l(string(p)); return len(p), nil }

// TestSessionsRights compares what a session may do with what the one who asked for
// its link may do.
func TestSessionsRights(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := startConsole(t, func(c *httpd.Config) { c.HostRoots = []string{root} })
	for _, key := range []string{"", s.onlyKey(api.MayUseKeys), s.onlyKey(api.MayUseBoxes)} {
		b := s.signIn(key)
		want := s.local("GET", "/v1/me", "")
		if key != "" {
			want = s.ask("GET", "/v1/me", "", bearer(key))
		}
		if got := b.get("/ui/api/v1/me").want(t, 200, ""); got.text != want.text {
			t.Errorf("the session is %s, want %s", got.text, want.text)
		}
		if got := b.get("/ui/api/v1/me", bearer(s.key)); got.text != want.text {
			t.Errorf("a key beside the cookie makes it %s", got.text)
		}
	}
	local := s.signIn("") // a browser is no process of the host's
	local.do("POST", "/ui/api/v1/boxes", `{"volumes":[{"host_path":"`+t.TempDir()+`","guest_path":"/v"}]}`).want(t, 403, "permission_denied")
	local.do("POST", "/ui/api/v1/boxes", `{"ports":[{"guest_port":80,"host_ip":"192.0.2.1"}]}`).want(t, 403, "permission_denied")
	local.do("POST", "/ui/api/v1/boxes", `{"volumes":[{"host_path":"`+root+`","guest_path":"/v"}]}`).want(t, 201, "")
}

// TestCookieUnderTLS wants the cookie to be kept from plain HTTP where TLS is spoken.
func TestCookieUnderTLS(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	host := httptest.NewTLSServer(nil)
	t.Cleanup(host.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.server.Serve(tls.NewListener(l, &tls.Config{Certificates: host.TLS.Certificates}), httpd.ByKey)
	}()
	t.Cleanup(func() { check(t, l.Close()); <-served })
	t.Cleanup(host.Client().CloseIdleConnections)
	secure := "https://" + l.Addr().String()
	for _, tt := range []struct {
		name, base, origin string
		status             int
		secure             bool
	}{
		{"plain", s.root(), s.root(), 204, false},
		{"a proxy's", s.root(), strings.Replace(s.root(), "http", "https", 1), 204, true},
		{"own", secure, secure, 204, true},
		{"own, without an origin", secure, "", 204, true},
		{"plain page", secure, strings.Replace(secure, "https", "http", 1), 403, false},
	} {
		a := s.send(host.Client(), tt.base, "POST", "/ui/session", `{"token":"`+s.link("")+`"}`, func(r *http.Request) {
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
		})
		if a.status != tt.status || a.status == 204 && cookieOf(t, a).Secure != tt.secure {
			t.Errorf("%s: %d %v", tt.name, a.status, a.header["Set-Cookie"])
		}
	}
}
