package httpd_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"sandbox/api"
	"sandbox/console"
	"sandbox/httpd"
)

// startConsole starts a service with the web console.
func startConsole(t testing.TB, change ...func(*httpd.Config)) *service {
	t.Helper()
	return start(t, append([]func(*httpd.Config){func(c *httpd.Config) {
		sessions, err := console.Open(console.Config{Dir: t.TempDir(), Log: c.Log})
		must(t, err)
		c.Console, c.Origin = sessions, func() string { return "http://origin.test" }
	}}, change...)...)
}

// browser is a browser that is signed in.
type browser struct {
	*service
	cookie *http.Cookie
	csrf   string
}

// root returns the address of the server without /api.
func (s *service) root() string { return strings.TrimSuffix(s.url, "/api") }

// link returns the token of a new link for the owner of a key; "" is the local user.
func (s *service) link(key string) string {
	s.t.Helper()
	a := s.local("POST", "/ui/links", "")
	if key != "" {
		a = s.send(s.client, s.root(), "POST", "/ui/links", "", bearer(key))
	}
	token, _ := a.want(s.t, 201, "").json["token"].(string)
	return token
}

// signIn signs a browser in.
func (s *service) signIn(key string) *browser {
	s.t.Helper()
	a := s.send(s.client, s.root(), "POST", "/ui/session", `{"token":"`+s.link(key)+`"}`).want(s.t, 204, "")
	b := &browser{service: s, cookie: cookieOf(s.t, a)}
	b.csrf, _ = b.get("/ui/session").want(s.t, 200, "").json["csrf"].(string)
	return b
}

// cookieOf returns the one cookie that a reply sets.
func cookieOf(t testing.TB, a answer) *http.Cookie {
	t.Helper()
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		t.Fatalf("the reply sets the cookies %v", cookies)
	}
	return cookies[0]
}

// get sends a request as the page does.
func (b *browser) get(path string, change ...func(*http.Request)) answer {
	b.t.Helper()
	return b.do("GET", path, "", change...)
}

// do sends a request as the page does, with the token if it changes something.
func (b *browser) do(method, path, body string, change ...func(*http.Request)) answer {
	b.t.Helper()
	own := func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: b.cookie.Name, Value: b.cookie.Value})
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if method != "GET" {
			r.Header.Set("X-CSRF-Token", b.csrf)
			r.Header.Set("Origin", b.root())
		}
	}
	return b.send(b.client, b.root(), method, path, body, append([]func(*http.Request){own}, change...)...)
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	b := s.signIn(s.key)
	session := b.get("/ui/session").want(t, 200, "")
	created, err := time.Parse(time.RFC3339, session.json["created_at"].(string))
	must(t, err)
	expires, err := time.Parse(time.RFC3339, session.json["expires_at"].(string))
	must(t, err)
	if expires.Sub(created) != 12*time.Hour || session.json["idle_seconds"] != 1800.0 || session.json["base"] != "/ui/api/v1" || session.json["boxes"] != "/ui/api/v1/boxes" {
		t.Errorf("got %s", session.text)
	}
	a := b.do("POST", "/ui/api/v1/boxes", `{"name":"web"}`).want(t, 201, "")
	id, _ := a.json["id"].(string)
	if got := a.header.Get("Location"); got != "/ui/api/v1/boxes/"+id {
		t.Errorf("Location %q", got)
	}
	b.get(a.header.Get("Location")).want(t, 200, "")
	b.do("POST", "/ui/api/v1/boxes/web:stop", "").want(t, 200, "")
	b.do("DELETE", "/ui/session", "").want(t, 204, "")
	b.get("/ui/session").want(t, 401, "unauthenticated")
	b.get("/ui/api/v1/boxes").want(t, 401, "unauthenticated")
}

// TestLinkOnce lets many browsers use one link at once.
func TestLinkOnce(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	token := s.link(s.key)
	var tries sync.WaitGroup
	var in atomic.Int32
	for range 16 {
		tries.Go(func() {
			if a := s.send(s.client, s.root(), "POST", "/ui/session", `{"token":"`+token+`"}`); a.status == 204 {
				in.Add(1)
			} else if a.want(t, 401, "unauthenticated"); a.header.Get("Set-Cookie") != "" {
				t.Error("a cookie without a session")
			}
		})
	}
	tries.Wait()
	if in.Load() != 1 {
		t.Errorf("%d browsers were signed in", in.Load())
	}
}

// TestSignInRefused sends what is no link's token.
func TestSignInRefused(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	for body, status := range map[string]int{
		"": 400, "{}": 400, `{"token":null}`: 400, `{"token":1}`: 400, `{"tokens":"x"}`: 400, `{"token":"x","x":1}`: 400, "[": 400,
		`{"token":""}`: 401, `{"token":"x"}`: 401, `{"token":"` + s.key + `"}`: 401, `{"token":"` + s.link("")[1:] + `"}`: 401,
	} {
		if a := s.send(s.client, s.root(), "POST", "/ui/session", body); a.status != status || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s, want %d", body, a.status, a.text, status)
		}
	}
}

// TestLinkNeedsAddress wants no link that no browser can follow.
func TestLinkNeedsAddress(t *testing.T) {
	t.Parallel()
	s := startConsole(t, func(c *httpd.Config) { c.Origin = func() string { return "" } })
	if a := s.local("POST", "/ui/links", "").want(t, 503, "unavailable"); !strings.Contains(a.text, "--listen") {
		t.Errorf("the message does not say what to do: %s", a.text)
	}
	s.signIn(s.key) // who came over TCP has found the way
}

// TestCookie reads the cookie as a browser does.
func TestCookie(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	b := s.signIn(s.key)
	c := b.cookie
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/ui" || c.Domain != "" || c.Secure || len(c.Value) != 43 || !strings.HasPrefix(c.Name, "sandbox_session") {
		t.Errorf("got %+v", c)
	}
	other := s.signIn(s.key)
	for name, cookie := range map[string]string{
		"none": "", "empty": c.Name + "=", "another's name": "sandbox_session1=" + c.Value, "short": c.Name + "=" + c.Value[1:],
		"two": c.Name + "=" + c.Value + "; " + c.Name + "=" + other.cookie.Value, "twice": c.Name + "=" + c.Value + "; " + c.Name + "=" + c.Value,
	} {
		if a := b.get("/ui/session", header("Cookie", cookie)); a.status != 401 {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
	b.get("/ui/session", header("Cookie", "a=b; "+c.Name+"="+c.Value+"; c=d")).want(t, 200, "")
	if gone := cookieOf(t, b.do("DELETE", "/ui/session", "").want(t, 204, "")); gone.MaxAge >= 0 || gone.Value != "" || gone.Path != "/ui" || gone.Name != c.Name {
		t.Errorf("a sign-out sets %+v", gone)
	}
}

func TestSignOutEverywhere(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	mine, also, others, local := s.signIn(s.key), s.signIn(s.key), s.signIn(s.onlyKey(api.MayUseBoxes)), s.signIn("")
	mine.do("DELETE", "/ui/sessions", "").want(t, 204, "")
	mine.get("/ui/session").want(t, 401, "unauthenticated")
	also.get("/ui/session").want(t, 401, "unauthenticated")
	others.get("/ui/session").want(t, 200, "")
	local.get("/ui/session").want(t, 200, "")
}

// TestConsoleExpiry moves the clock of the sessions.
func TestConsoleExpiry(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := startConsole(t, func(c *httpd.Config) {
		var err error
		c.Console, err = console.Open(console.Config{Dir: t.TempDir(), Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		must(t, err)
	})
	late := s.link(s.key)
	used, idle, polled := s.signIn(s.key), s.signIn(s.key), s.signIn(s.key)
	for range 25 {
		ahead.Add(int64(29 * time.Minute))
		if a := used.get("/ui/session"); a.status != 200 && time.Duration(ahead.Load()) < 12*time.Hour {
			t.Errorf("after %v: %d %s", time.Duration(ahead.Load()), a.status, a.text)
		}
		polled.get("/ui/api/v1/me", header("X-Background", "1"))
	}
	for name, b := range map[string]*browser{"absolute": used, "idle": idle, "polled": polled} {
		if a := b.get("/ui/session"); a.code() != "unauthenticated" {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
	s.send(s.client, s.root(), "POST", "/ui/session", `{"token":"`+late+`"}`).want(t, 401, "unauthenticated")
}

// TestConsoleHeaders wants every reply below /ui to tell the browser what it may do.
func TestConsoleHeaders(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	b := s.signIn(s.key)
	for _, tt := range []struct{ method, path, policy string }{
		{"GET", "/ui", "script-src 'self'; style-src 'self';"},
		{"GET", "/ui/", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		{"GET", "/ui/nosuch.js", "script-src 'self'; style-src 'self';"},
		{"GET", "/ui/assets/nosuch.js", "script-src 'self'; style-src 'self';"},
		{"PUT", "/ui/", "sandbox"},
		{"GET", "/ui/session", "sandbox"},
		{"BREW", "/ui/session", "sandbox"},
		{"POST", "/ui/session", "sandbox"},
		{"POST", "/ui/links", "sandbox"},
		{"GET", "/ui/api", "script-src 'self'; style-src 'self';"},
		{"GET", "/ui/api/v1/me", "sandbox"},
		{"GET", "/ui/api/v1/nosuch", "sandbox"},
		{"POST", "/ui/api/v1/observability/query", "sandbox"},
		{"POST", "/ui/api/v1/boxes/nosuch:stop", "sandbox"},
	} {
		for _, change := range []func(*http.Request){func(*http.Request) {}, header("Cookie", ""), header("Sec-Fetch-Site", "cross-site")} {
			a := b.do(tt.method, tt.path, "", change)
			for name, want := range map[string]string{
				"Content-Security-Policy": tt.policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
			} {
				if got := a.header.Get(name); !strings.Contains(got, want) || strings.Contains(got, "unsafe") {
					t.Errorf("%s %s (%d): %s: %q, want %q", tt.method, tt.path, a.status, name, got, want)
				}
			}
			if a.header["Access-Control-Allow-Origin"] != nil {
				t.Errorf("%s %s is open to other origins", tt.method, tt.path)
			}
		}
	}
}

// TestConsoleLog wants no secret of a browser in the log, and who has signed in.
func TestConsoleLog(t *testing.T) {
	t.Parallel()
	s := startConsole(t)
	token := s.link(s.key)
	b := &browser{service: s}
	b.cookie = cookieOf(t, s.send(s.client, s.root(), "POST", "/ui/session", `{"token":"`+token+`"}`))
	b.csrf, _ = b.get("/ui/session").json["csrf"].(string)
	s.send(s.client, s.root(), "POST", "/ui/session", `{"token":"`+token+`"}`).want(t, 401, "unauthenticated")
	b.get("/ui/api/v1/nosuch")
	b.do("POST", "/ui/api/v1/boxes", "{", header("X-CSRF-Token", "x"+b.csrf))
	b.do("DELETE", "/ui/sessions", "")
	log := s.log.String()
	for _, secret := range []string{token, b.cookie.Value, b.csrf} {
		if secret == "" || strings.Contains(log, secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
	if !strings.Contains(log, `"msg":"signed in to the console"`) || !strings.Contains(log, `"principal":"`+s.keys.List()[0].ID+`","remote":"127.0.0.1`) {
		t.Errorf("the log does not say who has signed in: %s", log)
	}
}

// TestNoConsole wants a server without a console to have nothing at /ui.
func TestNoConsole(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/ui", "/ui/", "/ui/session", "/ui/api/v1/me", "/ui/links"} {
		s.ask("GET", path, "").want(t, 404, "not_found")
		s.ask("GET", path, "", bearer("")).want(t, 401, "unauthenticated")
	}
}

// FuzzCookie sends any cookie, which must not be a session's.
func FuzzCookie(f *testing.F) {
	s := startConsole(f)
	b := s.signIn(s.key)
	for _, value := range []string{"", "=", b.cookie.Name, b.cookie.Name + "=", b.cookie.Name + "=" + b.csrf, b.cookie.Name + `="` + strings.Repeat("A", 43) + `"`, strings.Repeat(b.cookie.Name+"=x;", 50)} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, cookie string) {
		if !httpguts.ValidHeaderFieldValue(cookie) || strings.Contains(cookie, b.cookie.Value) {
			return
		}
		one := browser{service: &service{t: t, url: s.url, client: s.client}, cookie: b.cookie}
		if a := one.get("/ui/session", func(r *http.Request) { r.Header["Cookie"] = []string{cookie} }); a.status != 401 && a.status != 431 {
			t.Errorf("%q: %d %s", cookie, a.status, a.text)
		}
	})
}
