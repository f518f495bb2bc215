package proxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
)

// CookiePrefix begins the names of this service's own cookies. No program sees one, and
// none can set one.
const CookiePrefix = "sandbox_"

// request makes of a client's request the one that the program gets. Headers that are
// for one connection alone are gone already, and those that proxies set.
func (t Target) request(r *httputil.ProxyRequest) {
	out := r.Out
	out.URL.Scheme, out.URL.Host = "http", net.JoinHostPort(t.Box, strconv.Itoa(t.Port))
	out.URL.RawPath, out.URL.RawQuery = t.Path, t.Query
	if path, err := url.PathUnescape(t.Path); err == nil {
		out.URL.Path = path
	}
	out.Host = r.In.Host // what the program's own links and its checks of origins go by
	r.SetXForwarded()
	out.Header.Del("X-Forwarded-Prefix")
	if t.Prefix != "" {
		out.Header.Set("X-Forwarded-Prefix", t.Prefix)
	}
	if t.Key {
		out.Header.Del("Authorization")
	}
	if cookies := withoutOurs(r.In.Header["Cookie"]); len(cookies) > 0 {
		out.Header["Cookie"] = cookies
	} else {
		out.Header.Del("Cookie")
	}
}

// withoutOurs returns headers with cookies without those of this service.
func withoutOurs(headers []string) []string {
	var kept []string
	for _, header := range headers {
		var theirs []string
		for cookie := range strings.SplitSeq(header, ";") {
			if cookie = strings.TrimSpace(cookie); cookie != "" && !strings.HasPrefix(cookie, CookiePrefix) {
				theirs = append(theirs, cookie)
			}
		}
		if len(theirs) > 0 {
			kept = append(kept, strings.Join(theirs, "; "))
		}
	}
	return kept
}

// notForHosts are headers that tell a browser something of the whole host.
var notForHosts = []string{
	"Alt-Svc", "Nel", "Report-To", "Reporting-Endpoints", "Service-Worker-Allowed", "Strict-Transport-Security",
}

// sandboxed keeps a page from everything that has its host: a browser treats it as a
// host of its own that nobody else has.
const sandboxed = "sandbox allow-downloads allow-forms allow-modals allow-pointer-lock allow-popups allow-scripts"

// answer changes the head of a program's answer so that it concerns the program alone.
// ours is the head that it is added to.
func (t Target) answer(ours http.Header, answer *http.Response) {
	h := answer.Header
	for name := range h {
		if _, twice := ours[name]; twice { // such as a request id of the program's own
			ours.Del(name)
		}
	}
	h.Del("Clear-Site-Data") // it would clear the data of all hosts of the domain
	t.setCookies(h)
	if t.Prefix == "" {
		return
	}
	for _, name := range notForHosts {
		h.Del(name)
	}
	h.Add("Content-Security-Policy", sandboxed)
	h.Set("Referrer-Policy", "same-origin") // the address of a link is a secret
	for _, name := range []string{"Location", "Content-Location"} {
		if to := h.Get(name); to != "" {
			h.Set(name, t.moved(to, answer.Request.Host))
		}
	}
}

// moved returns where an address leads that the program names, as the client sees it.
// Addresses of other hosts and those without a path from the root stay as they are.
func (t Target) moved(to, host string) string {
	u, err := url.Parse(to)
	if err != nil || !strings.HasPrefix(u.Path, "/") {
		return to
	}
	if u.Host != "" && !strings.EqualFold(u.Host, host) {
		return to
	}
	moved := t.Prefix + u.EscapedPath()
	if u.RawQuery != "" || u.ForceQuery {
		moved += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		moved += "#" + u.EscapedFragment()
	}
	return moved
}

// setCookies bounds the cookies that the program sets to its own host and path.
func (t Target) setCookies(h http.Header) {
	set := h["Set-Cookie"]
	if len(set) == 0 {
		return
	}
	h.Del("Set-Cookie")
	for _, cookie := range set {
		if !strings.HasPrefix(strings.TrimSpace(cookie), CookiePrefix) {
			h.Add("Set-Cookie", t.bounded(cookie))
		}
	}
}

// bounded returns a cookie without its domain, and behind a prefix with a path below
// that.
func (t Target) bounded(cookie string) string {
	path, kept := "/", []string{}
	for i, attribute := range strings.Split(cookie, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(attribute), "=")
		switch {
		case i > 0 && strings.EqualFold(strings.TrimSpace(name), "domain"):
		case i > 0 && t.Prefix != "" && strings.EqualFold(strings.TrimSpace(name), "path"):
			if value = strings.TrimSpace(value); strings.HasPrefix(value, "/") {
				path = value
			}
		default:
			kept = append(kept, strings.TrimSpace(attribute))
		}
	}
	if t.Prefix != "" {
		kept = append(kept, "Path="+t.Prefix+path)
	}
	return strings.Join(kept, "; ")
}
