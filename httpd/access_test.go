package httpd_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/httpd"
)

// TestAccess asks every route of the table with everything that is no
// permission, and wants it refused and nothing changed.
func TestAccess(t *testing.T) {
	t.Parallel()
	s := start(t)
	running := s.create(`{}`)
	stopped := s.create(`{}`)
	s.ask("POST", "/v1/boxes/"+stopped+":stop?timeout_seconds=0", "").want(t, 200, "")
	soon := time.Now().Add(2 * time.Second)
	expired := s.newKey(auth.Request{Permissions: api.Permissions(), ExpiresAt: &soon})
	deleted := s.newKey(auth.Request{Permissions: api.Permissions()})
	must(t, s.keys.Delete(t.Context(), s.keys.List()[0].ID))
	time.Sleep(time.Until(soon)) // an expiry is a time of day: nothing else brings it about
	mistyped := s.key[:20] + string(s.key[20]^1) + s.key[21:]

	none := func(r *http.Request) { r.Header.Del("Authorization") }
	without := map[string]func(*http.Request){
		"no key":       none,
		"expired":      bearer(expired),
		"deleted":      bearer(deleted),
		"mistyped":     bearer(mistyped),
		"rubbish":      bearer("sbx_live_\xff'; DROP TABLE keys"),
		"empty":        header("Authorization", "Bearer "),
		"other scheme": header("Authorization", "Basic "+s.key),
		"bare":         header("Authorization", s.key),
		"two keys":     func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + s.key, "Bearer " + deleted} },
		"a cookie": func(r *http.Request) {
			none(r)
			r.AddCookie(&http.Cookie{Name: "Authorization", Value: "Bearer " + s.key})
			r.AddCookie(&http.Cookie{Name: "session", Value: s.key})
		},
		"in the query":    func(r *http.Request) { none(r); r.URL.RawQuery = "api_key=" + s.key + "&access_token=" + s.key },
		"another header":  func(r *http.Request) { none(r); r.Header.Set("X-Api-Key", s.key) },
		"a proxy's":       func(r *http.Request) { none(r); r.Header.Set("Proxy-Authorization", "Bearer "+s.key) },
		"a forged local":  func(r *http.Request) { none(r); r.Host = "localhost"; r.Header.Set("X-Forwarded-For", "127.0.0.1") },
		"a lone protocol": func(r *http.Request) { none(r); r.Header.Set("Sec-WebSocket-Protocol", "sandbox.v1, bearer."+deleted) },
	}
	for _, permission := range api.Permissions() {
		s.onlyKey(permission)
	}
	before := s.state()
	for _, route := range httpd.Routes() {
		for _, id := range []string{running, stopped} {
			path := fill(route.Pattern, id)
			body := ""
			if route.Method == "POST" {
				body = `{"image":"default","cmd":["true"],"name":"planted","permissions":["Boxes"]}`
			}
			unknown, denied := "unauthenticated", "permission_denied"
			if route.Pattern == "/v1/logs" || route.Method == "HEAD" { // a google.rpc.Status has no code of ours, no body none at all
				unknown, denied = "", ""
			}
			for name, change := range without {
				a := s.ask(route.Method, path, body, change)
				if route.Open && route.Program { // who has a link needs no key
					a.want(t, 403, "permission_denied")
					continue
				} else if route.Open {
					a.want(t, 200, "")
					continue
				}
				if a.want(t, 401, unknown); a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s %s, %s: no WWW-Authenticate", route.Method, path, name)
				}
			}
			for _, has := range api.Permissions() {
				if route.Permission == "" || route.Permission == has {
					continue
				}
				s.ask(route.Method, path, body, bearer(s.onlyKey(has))).want(t, 403, denied)
			}
		}
	}
	if after := s.state(); after != before {
		t.Errorf("refused requests changed the state: before\n%s\nafter\n%s", before, after)
	}
	for _, secret := range []string{s.key, deleted, expired, mistyped} {
		if log := s.log.String(); strings.Contains(log, secret[9:40]) {
			t.Error("a key is in the log")
		}
	}
}

// onlyKeys are one key a permission.
func (s *service) onlyKey(permission string) string {
	s.t.Helper()
	if s.only == nil {
		s.only = map[string]string{}
	}
	if s.only[permission] == "" {
		s.only[permission] = s.newKey(auth.Request{Permissions: []string{permission}})
	}
	return s.only[permission]
}

// TestUnknownRoutes wants 401 without a key where there is nothing, too.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.create(`{"name":"web"}`)
	for _, tt := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "not_found", ""},
		{"GET", "/v1", 404, "not_found", ""},
		{"GET", "/v1/", 404, "not_found", ""},
		{"GET", "/v1/boxes/", 404, "not_found", ""},
		{"GET", "//v1/boxes", 404, "not_found", ""},
		{"GET", "/v1/../v1/boxes", 404, "not_found", ""},
		{"GET", "/V1/boxes", 404, "not_found", ""},
		{"GET", "/v2/boxes", 404, "not_found", ""},
		{"GET", "/api/v1/boxes", 404, "not_found", ""},
		{"GET", "/v1/other/boxes", 404, "not_found", ""},
		{"GET", "/v1/boxes/" + id + "/nope", 404, "not_found", ""},
		{"POST", "/v1/boxes/" + id + ":restart", 404, "not_found", ""},
		{"POST", "/v1/boxes/" + id + ":", 405, "method_not_allowed", "DELETE, GET, PATCH"},
		{"POST", "/v1/boxes/" + id, 405, "method_not_allowed", "DELETE, GET, PATCH"},
		{"PUT", "/v1/boxes", 405, "method_not_allowed", "GET, POST"},
		{"PUT", "/v1/boxes/nosuch", 405, "method_not_allowed", "DELETE, GET, PATCH"},
		{"GET", "/v1/boxes/web:stop", 405, "method_not_allowed", "POST"},
		{"DELETE", "/v1/info", 405, "method_not_allowed", "GET"},
		{"OPTIONS", "/v1/me", 405, "method_not_allowed", "GET"},
		{"BREW", "/v1/me", 405, "method_not_allowed", "GET"},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			t.Parallel()
			a := s.ask(tt.method, tt.path, "").want(t, tt.status, tt.code)
			if got := a.header.Get("Allow"); got != tt.allow {
				t.Errorf("Allow %q, want %q", got, tt.allow)
			}
			s.ask(tt.method, tt.path, "", bearer("")).want(t, 401, "unauthenticated")
		})
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Prefix = "team" })
	a := s.ask("POST", "/v1/team/boxes", `{}`).want(t, 201, "")
	id, _ := a.json["id"].(string)
	if got := a.header.Get("Location"); got != "/v1/team/boxes/"+id {
		t.Errorf("Location %q", got)
	}
	s.ask("GET", "/v1/team/boxes/"+id, "").want(t, 200, "")
	s.ask("POST", "/v1/team/boxes/"+id+":stop", "").want(t, 200, "")
	for _, path := range []string{"/v1/info", "/v1/me", "/v1/keys", "/v1/team/info", "/v1/team/me", "/v1/team/keys", "/healthz", "/metrics"} {
		s.ask("GET", path, "").want(t, 200, "")
	}
	for _, path := range []string{"/v1/boxes", "/v1/boxes/" + id, "/v1/other/boxes", "/v1/team/team/boxes", "/v1/team", "/v1/team/healthz"} {
		if a := s.ask("GET", path, "").want(t, 404, "not_found"); a.json["detail"] != nil {
			t.Error("the reply has a detail that only hosted servers send")
		}
		s.local("GET", path, "").want(t, 404, "not_found")
	}
	if a := s.ask("GET", "/v1/me", ""); a.json["path_prefix"] != "team" {
		t.Errorf("me: %s", a.text)
	}
}

func TestPrefixRefused(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"boxes", "info", "keys", "me", "gc", "a/b", "/a", "a/", "..", ".", ":id", "*x", "%2f", "a b", "ä"} {
		if _, err := httpd.New(httpd.Config{Prefix: prefix}); err == nil || !strings.Contains(err.Error(), "prefix") {
			t.Errorf("%q: got %v", prefix, err)
		}
	}
	if _, err := httpd.New(httpd.Config{Prefix: "a", Hosted: true}); err == nil {
		t.Error("a prefix is accepted together with hosted")
	}
}

func TestHosted(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.Hosted = true })
	a := s.ask("POST", "/v1/boxes", `{}`).want(t, 201, "")
	id, _ := a.json["id"].(string)
	if got := a.header.Get("Location"); got != "/api/v1/boxes/"+id {
		t.Errorf("Location %q", got)
	}
	s.local("GET", "/api/v1/boxes", "").want(t, 200, "")
	s.local("GET", "/v1/boxes", "").want(t, 200, "")
	root := strings.TrimSuffix(s.url, "/api")
	for _, path := range []string{"/v1/boxes", "/v1/boxes/" + id, "/v1/me", "/", "/boxes", "/ap/v1/boxes", "/apiv1/boxes", "/api", "/api/v1/team/boxes", "/api/v1/team/boxes/" + id + ":stop", "/api/v1/team/me"} {
		for _, change := range []func(*http.Request){bearer(s.key), bearer("")} {
			a := s.send(s.client, root, "GET", path, "", change).want(t, 404, "not_found")
			if a.json["detail"] != "Not Found" {
				t.Errorf("%s: %s", path, a.text)
			}
		}
	}
	for _, path := range []string{"/v1/nope", "/v1/boxes/a/b/c", "/nope"} { // common shape, behind the key
		if a := s.ask("GET", path, "").want(t, 404, "not_found"); a.json["detail"] != nil {
			t.Errorf("%s: %s", path, a.text)
		}
		s.ask("GET", path, "", bearer("")).want(t, 401, "unauthenticated")
	}
	s.send(s.client, root, "GET", "/healthz", "").want(t, 200, "")
	s.send(s.client, root, "GET", "/metrics", "").want(t, 401, "unauthenticated")
}

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := start(t)
	const mine = "0123ABCD-4567-89ab-cdef-0123456789ab"
	for sent, keep := range map[string]bool{
		"": false, mine: true, "x": false, strings.Repeat("a", 36): false, "{" + mine + "}": false, "urn:uuid:" + mine: false,
		strings.ReplaceAll(mine, "-", ""): false, mine[:35] + "g": false, "<script>": false,
	} {
		a := s.ask("GET", "/v1/nope", "", header("X-Request-Id", sent)).want(t, 404, "not_found")
		id := a.header.Get("X-Request-Id")
		if keep && id != mine || !keep && !uuidPattern.MatchString(id) {
			t.Errorf("sent %q, got %q", sent, id)
		}
		if e, _ := a.json["error"].(map[string]any); e["request_id"] != id {
			t.Errorf("body has %v, header %q", e["request_id"], id)
		}
		if !strings.Contains(s.log.String(), `"request_id":"`+id+`"`) {
			t.Errorf("%q is not in the log", id)
		}
	}
}

func TestMe(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.ask("GET", "/v1/me", "", bearer(s.onlyKey(api.MayQueryLogs))).want(t, 200, "")
	if a.json["principal_type"] != "service_account" || a.json["name"] != "test" || fmt.Sprint(a.json["permissions"]) != "[observability.logs.query]" || a.json["environment"] != "default" {
		t.Errorf("got %s", a.text)
	}
	a = s.local("GET", "/v1/me", "", bearer("rubbish")).want(t, 200, "")
	if a.json["principal_type"] != "local" || a.json["sub"] != "local" || a.json["path_prefix"] != nil || a.json["expires_at"] != nil {
		t.Errorf("got %s", a.text)
	}
}

// TestRoutesAreWhole wants every route to be reachable by its own pattern.
func TestRoutesAreWhole(t *testing.T) {
	t.Parallel()
	s := start(t)
	var seen []string
	for _, r := range httpd.Routes() {
		name := r.Method + " " + r.Pattern
		if slices.Contains(seen, name) {
			t.Errorf("%s is in the table of routes twice", name)
		}
		seen = append(seen, name)
		if a := s.ask(r.Method, fill(r.Pattern, "nosuch"), ""); a.code() == "not_found" || a.status == 405 || a.status >= 500 && a.code() != "unavailable" {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
}
