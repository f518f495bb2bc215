package httpd_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"sandbox/httpd"
	"sandbox/test/members"
)

// visit asks for an address without a key; change may change the request.
func (s *service) visit(address string, change ...func(*http.Request)) answer {
	s.t.Helper()
	u, err := url.Parse(address)
	must(s.t, err)
	host := u.Host
	u.Host = strings.TrimPrefix(s.root(), "http://")
	own := func(r *http.Request) { r.Host = host }
	s.client.CheckRedirect = stay
	return s.send(s.client, "", "GET", u.String(), "", append([]func(*http.Request){own}, change...)...)
}

// link makes a link to a port of a box.
func (s *service) share(box, body string) (link string) {
	s.t.Helper()
	link, _ = s.ask("POST", "/v1/boxes/"+box+":share", body).want(s.t, 201, "").json["url"].(string)
	return link
}

// TestShare follows a link without a key, as it is, changed and ended.
func TestShare(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*httpd.Config){
		"plain":  func(*httpd.Config) {},
		"hosted": func(c *httpd.Config) { c.Hosted = true },
	} {
		s := start(t, change)
		seen := make(chan *http.Request, 1)
		port := program(t, func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
			_, _ = io.WriteString(w, r.URL.RequestURI())
			seen <- r
		})
		id := s.create(`{"name":"web"}`)
		link := s.share("web", fmt.Sprintf(`{"port":%d,"expires_in_seconds":60}`, port))
		prefix := strings.TrimSuffix(strings.TrimPrefix(link, s.root()), "/")
		a := s.visit(link+"a%2Fb?c=d", header("Authorization", "Basic abc"))
		r := <-seen
		members.Equal(t, name, members.Of{
			"status": {a.status, 200}, "body": {a.text, "/a%2Fb?c=d"}, "cookie": {a.header.Get("Set-Cookie"), "a=1; Path=" + prefix + "/"},
			"policy": {strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox "), true}, "referrer": {a.header.Get("Referrer-Policy"), "same-origin"},
			"authorization": {r.Header.Get("Authorization"), "Basic abc"},
		})
		s.visit(link, bearer(s.key)).want(t, 200, "")
		if r := <-seen; r.Header.Get("Authorization") != "" {
			t.Errorf("%s: a key has reached the program", name)
		}
		if a := s.visit(strings.TrimSuffix(link, "/") + "?x"); a.status != 308 || a.header.Get("Location") != prefix+"/?x" {
			t.Errorf("%s, without a slash: %d %q", name, a.status, a.header.Get("Location"))
		}
		changed := strings.Replace(link, "/"+fmt.Sprint(port)+"-", "/"+fmt.Sprint(port^1)+"-", 1)
		if a := s.visit(changed).want(t, 403, "permission_denied"); !strings.Contains(a.text, "not valid") {
			t.Errorf("%s, changed: %s", name, a.text)
		}
		if token := strings.Split(prefix, "/")[len(strings.Split(prefix, "/"))-1]; strings.Contains(s.log.String(), token) {
			t.Errorf("%s: the log has the token", name)
		}
		must(t, s.runtime.Remove(t.Context(), id, true))
		s.visit(link).want(t, 404, "box_not_found")
	}
}

// TestShareEnds wants a link to end in time, also under an answer that flows.
func TestShareEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	port := program(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "flows")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s.create(`{"name":"web"}`)
	link := s.share("web", fmt.Sprintf(`{"port":%d,"expires_in_seconds":10}`, port)) // of which the visit may take nine
	resp, err := s.client.Get(link)
	must(t, err)
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != "flows" || err == nil {
		t.Errorf("it ended with %q, %v", got, err)
	}
	if a := s.visit(link).want(t, 403, "permission_denied"); !strings.Contains(a.text, "has ended") {
		t.Errorf("afterwards: %s", a.text)
	}
}

func TestShareRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(`{"name":"web"}`)
	for body, want := range map[string]struct {
		status      int
		code, field string
	}{
		`{}`:                                      {400, "malformed", "port"},
		`{"port":"80"}`:                           {400, "malformed", "port"},
		`{"port":80,"extra":1}`:                   {400, "malformed", "extra"},
		`{"port":0}`:                              {422, "invalid_argument", "port"},
		`{"port":65536}`:                          {422, "invalid_argument", "port"},
		`{"port":80,"expires_in_seconds":0}`:      {422, "invalid_argument", "expires_in_seconds"},
		`{"port":80,"expires_in_seconds":-1}`:     {422, "invalid_argument", "expires_in_seconds"},
		`{"port":1,"expires_in_seconds":2592001}`: {422, "invalid_argument", "expires_in_seconds"},
		`{"port":80,"expires_in_seconds":null}`:   {201, "", ""},
	} {
		a := s.ask("POST", "/v1/boxes/web:share", body).want(t, want.status, want.code)
		if !strings.Contains(a.text, `"`+want.field+`"`) && want.field != "" {
			t.Errorf("%s: %s", body, a.text)
		}
	}
	s.ask("POST", "/v1/boxes/none:share", `{"port":80}`).want(t, 404, "box_not_found")
	s.local("POST", "/v1/boxes/web:share", `{"port":80}`).want(t, 503, "unavailable") // no browser finds the socket
	s.ask("GET", "/v1/shares/", "").want(t, 404, "not_found")
	s.visit(s.url+"/v1/shares/x/").want(t, 403, "permission_denied")
}

// TestPortHosts asks for hosts of ports by key, by link and by the cookie of one.
func TestPortHosts(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *httpd.Config) { c.PortDomain = "ports.test" })
	seen := make(chan *http.Request, 1)
	port := program(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1; Domain=ports.test; Path=/x")
		w.Header().Add("Set-Cookie", "sandbox_share=planted")
		w.Header().Set("Location", "/there")
		_, _ = io.WriteString(w, r.Host+r.URL.RequestURI())
		seen <- r
	})
	id := s.create(`{"name":"web"}`)
	bare := strings.TrimPrefix(id, "box_")
	host := fmt.Sprintf("http://%d-%s.ports.test", port, bare)
	for _, host := range []string{host, fmt.Sprintf("http://%d-%s.PORTS.test:9090", port, id)} {
		a := s.visit(host+"//a%2Fb?c", bearer(s.key))
		r := <-seen
		members.Equal(t, host, members.Of{
			"status": {a.status, 200}, "body": {a.text, strings.TrimPrefix(host, "http://") + "//a%2Fb?c"}, "cookies": {strings.Join(a.header["Set-Cookie"], "|"), "a=1; Path=/x"},
			"policy": {a.header.Get("Content-Security-Policy"), ""}, "location": {a.header.Get("Location"), "/there"},
			"key": {r.Header.Get("Authorization"), ""}, "prefix": {r.Header.Get("X-Forwarded-Prefix"), ""},
		})
	}
	link := s.share("web", fmt.Sprintf(`{"port":%d}`, port))
	if !strings.HasPrefix(link, host+":") || !strings.Contains(link, "/?sandbox_share=") {
		t.Errorf("the link is %q", link)
	}
	token := link[strings.Index(link, "=")+1:]
	if a := s.visit(host+"/p?x=1&sandbox_share="+token+"&y", header("Authorization", "Bearer theirs")); a.text != strings.TrimPrefix(host, "http://")+"/p?x=1&y" {
		t.Errorf("a program that follows the link: %d %s", a.status, a.text)
	}
	if r := <-seen; r.Header.Get("Authorization") != "Bearer theirs" {
		t.Errorf("the program got %q", r.Header.Get("Authorization"))
	}
	page := s.visit(host+"//evil.test/?sandbox_share="+token+"&y", header("Accept", "text/html"))
	cookie := cookieOf(t, page)
	members.Equal(t, "a browser that follows the link", members.Of{
		"status": {page.status, 303}, "to": {page.header.Get("Location"), "/evil.test/?y"}, "cookie": {cookie.Value, token},
		"hidden": {cookie.HttpOnly, true}, "path": {cookie.Path, "/"}, "domain": {cookie.Domain, ""}, "ends": {time.Until(cookie.Expires) > 59*time.Minute, true},
	})
	s.visit(host+"/", header("Cookie", "b=2; sandbox_share="+token)).want(t, 200, "")
	if r := <-seen; r.Header.Get("Cookie") != "b=2" {
		t.Errorf("the program got the cookies %q", r.Header.Get("Cookie"))
	}
	with := header("Cookie", "sandbox_share="+token)
	s.visit(host+"/").want(t, 401, "unauthenticated")
	s.visit(host+"/?sandbox_share=x").want(t, 403, "permission_denied")
	s.visit(fmt.Sprintf("http://%d-%s.ports.test/", port^1, bare), with).want(t, 403, "permission_denied")
	s.visit(fmt.Sprintf("http://%d-%s.ports.test/", port, strings.Repeat("a", 20)), with).want(t, 403, "permission_denied")
	s.visit(host+"/", bearer(s.onlyKey("Keys"))).want(t, 403, "permission_denied")
	for _, label := range []string{"x", "80", "0-" + bare, "080-" + bare, "65536-" + bare, "80-" + bare + "x", "80-web", "a.80-" + bare} {
		s.visit("http://"+label+".ports.test/v1/boxes", bearer(s.key)).want(t, 404, "not_found")
	}
	for _, host := range []string{"ports.test", "evilports.test", "80-" + bare + ".ports.test.evil"} {
		s.visit("http://"+host+"/v1/boxes", bearer(s.key)).want(t, 200, "")
	}
	if strings.Contains(s.log.String(), token) {
		t.Error("the log has the token")
	}
}
