package httpd_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

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
