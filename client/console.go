package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"sandbox/core/fault"
)

// ConsoleLink makes a link that signs a browser in to the server's web console as
// this client's principal. It works once, and until the time returned. Errors:
// Unavailable (no browser can reach the server, or it has no console).
func (c *Client) ConsoleLink(ctx context.Context) (link string, until time.Time, err error) {
	var l struct {
		Token     string    `json:"token"`
		Origin    string    `json:"origin"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	err = c.call(ctx, request{method: http.MethodPost, path: "/ui/links"}, &l)
	if fault.Is(err, fault.NotFound) {
		return "", until, fault.New(fault.Unavailable, "%s has no web console: it is older, or runs with --no-console", c.url)
	}
	if err != nil {
		return "", until, err
	}
	origin, err := url.Parse(c.base)
	if c.socket {
		origin, err = url.Parse(l.Origin)
	}
	if err != nil {
		return "", until, fault.Wrap(fault.Upstream, err, "%s sent no address of its console", c.url)
	}
	page := url.URL{Scheme: origin.Scheme, Host: origin.Host, Path: "/ui/", Fragment: "sign-in=" + l.Token}
	return page.String(), l.ExpiresAt, nil
}
