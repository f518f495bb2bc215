// Package client speaks with a sandbox daemon, or with the hosted service,
// over REST, Server-Sent Events and WebSockets.
//
//	o, err := client.OptionsFromEnv()
//	c, err := client.New(o)
//	box, err := c.CreateBox(ctx, options.Box{...})
//
// Methods wait for as long as their context lets them; nothing else bounds
// them. Failures are those of package fault, by the code that the server gave;
// [Error] has the rest of its answer. A server that can't be reached is
// fault.Unavailable.
//
// What may safely be sent twice is: reading, removing, and creating a box
// (which carries an Idempotency-Key) are tried again after a connection that
// was refused or lost before the answer, and when the server says Retry-After.
// Commands are never started twice.
package client

import (
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/gorilla/websocket"

	"sandbox/core/fault"
)

// Environment variables that [OptionsFromEnv] reads.
const (
	EnvURL        = "SANDBOX_REST_URL"
	EnvAPIKey     = "SANDBOX_API_KEY"
	EnvPathPrefix = "SANDBOX_REST_PATH_PREFIX"
)

// Options say which server to speak with, and as whom.
type Options struct {
	// URL is http://HOST:PORT or https://HOST, that of the hosted service
	// ending in /api, or unix:///PATH of a daemon's socket.
	URL string
	// Credential is sent with every request; the zero value sends none, which
	// is enough for a Unix socket.
	Credential ApiKeyCredential
	// PathPrefix is the route prefix of a self-hosted server (its --prefix);
	// "" for none, and always for the hosted service.
	PathPrefix string
}

// OptionsFromEnv reads SANDBOX_REST_URL, SANDBOX_API_KEY and
// SANDBOX_REST_PATH_PREFIX. Errors: Config (the URL is unset).
func OptionsFromEnv() (Options, error) {
	o := Options{
		URL:        os.Getenv(EnvURL),
		Credential: NewApiKeyCredential(os.Getenv(EnvAPIKey)),
		PathPrefix: os.Getenv(EnvPathPrefix),
	}
	if o.URL == "" {
		return Options{}, fault.New(fault.Config, "%s is not set: set it to the server's address", EnvURL)
	}
	return o, nil
}

// Client speaks with one server. It is safe for concurrent use, and keeps
// connections open until Close.
type Client struct {
	url        string // as the options have it, for messages
	base       string // what requests begin with
	boxes      string // path below which boxes are
	credential ApiKeyCredential
	http       *http.Client
	ws         websocket.Dialer
}

// New checks the options; it connects to nothing. Errors: Config.
func New(o Options) (*Client, error) {
	base, socket, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if err := o.Credential.check(); err != nil {
		return nil, err
	}
	boxes := "/v1/boxes"
	if prefix := strings.Trim(o.PathPrefix, "/"); prefix != "" {
		boxes = "/v1/" + escape(strings.Split(prefix, "/")...) + "/boxes"
	}
	transport := newTransport(socket)
	return &Client{
		url: o.URL, base: base, boxes: boxes, credential: o.Credential,
		http: &http.Client{Transport: transport, CheckRedirect: noRedirect},
		ws: websocket.Dialer{
			NetDialContext: transport.DialContext, Proxy: transport.Proxy,
			ReadBufferSize: frame, WriteBufferSize: frame,
		},
	}, nil
}

// Close returns up the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// parseURL returns what requests to the server begin with, and the path of its
// socket if it is one.
func parseURL(address string) (base, socket string, err error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", "", fault.New(fault.Config, "the URL can't be read: want http://HOST:PORT, https://HOST/api or unix:///PATH")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", fault.New(fault.Config, "URL %s: has more than a host and a path", u.Redacted())
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return "http://localhost", u.Path, nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return strings.TrimRight(u.String(), "/"), "", nil
	}
	return "", "", fault.New(fault.Config, "URL %q: want http://HOST:PORT, https://HOST/api or unix:///PATH", address)
}

// escape joins segments of a path.
func escape(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
