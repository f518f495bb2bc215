// Package client talks to a sandbox daemon, or to the hosted service, over REST,
// Server-Sent Events and WebSockets.
//
//	o, err := client.OptionsFromEnv()
//	c, err := client.New(o)
//	box, err := c.CreateBox(ctx, options.Box{...})
//
// Methods wait until their context ends; there is no other timeout. A failure is
// a fault of package fault, of the kind that the server's code names, and [Error]
// has the rest of the server's reply. A server that can't be reached is
// fault.Unavailable.
//
// Requests that are safe to send twice are sent again if the connection was
// refused, or lost before the reply, or if the server says Retry-After: those that
// read, those that remove, those that pull an image, and the one that creates a
// box, which carries an Idempotency-Key. Commands are never started twice.
package client

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"sandbox/core/fault"
)

// Environment variables that [OptionsFromEnv] reads.
const (
	EnvURL        = "SANDBOX_REST_URL"
	EnvAPIKey     = "SANDBOX_API_KEY"
	EnvPathPrefix = "SANDBOX_REST_PATH_PREFIX"
)

// Options say which server to talk to, and with which key.
type Options struct {
	// URL is http://HOST:PORT, https://HOST, or unix:///PATH with the path of
	// a daemon's socket. The URL of the hosted service ends in /api.
	URL string
	// Credential is sent with every request. The zero value sends none, which
	// is enough for a Unix socket.
	Credential ApiKeyCredential
	// PathPrefix is the route prefix of a self-hosted server (its --prefix), or
	// "". The hosted service has none.
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

// Client talks to one server. It is safe for concurrent use, and keeps connections
// open until Close.
type Client struct {
	url        string // as in the options, for messages
	base       string // scheme, host and path that the URLs of requests begin with
	socket     bool   // the server is reached through its Unix socket
	boxes      string // path of the boxes
	credential ApiKeyCredential
	http       *http.Client
	ws         websocket.Dialer
	alive      time.Duration // between two signs of life of a session
}

// New makes a client. It checks the options but does not connect yet. Errors:
// Config.
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
		url: o.URL, base: base, socket: socket != "", boxes: boxes, credential: o.Credential, alive: alive,
		http: &http.Client{Transport: transport, CheckRedirect: noRedirect},
		ws: websocket.Dialer{
			NetDialContext: transport.DialContext, Proxy: transport.Proxy,
			ReadBufferSize: frame, WriteBufferSize: frame,
		},
	}, nil
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// parseURL returns the beginning of the URLs of requests, and the path of the
// server's Unix socket, or "" if it has none. Errors: Config.
func parseURL(address string) (base, socket string, err error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", "", fault.New(fault.Config, "the URL can't be read: want http://HOST:PORT, https://HOST/api or unix:///PATH")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", fault.New(fault.Config, "URL %s: must have only a host and a path", u.Redacted())
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return "http://localhost", u.Path, nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return strings.TrimRight(u.String(), "/"), "", nil
	}
	return "", "", fault.New(fault.Config, "URL %q: want http://HOST:PORT, https://HOST/api or unix:///PATH", address)
}

// escape escapes segments and joins them to a path.
func escape(segments ...string) string {
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
