package client

import (
	"context"
	"net/http"
	"time"

	"sandbox/api"
)

// Info returns the server's limits, usage and defaults. Errors: Unauthenticated.
func (c *Client) Info(ctx context.Context) (i api.Info, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/v1/info", again: true}, &i)
	return i, err
}

// Me returns the principal as which the server sees this client. Errors:
// Unauthenticated.
func (c *Client) Me(ctx context.Context) (m api.Identity, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/v1/me", again: true}, &m)
	return m, err
}

// GC removes the boxes that have been stopped or failed for at least olderThan,
// which is rounded down to seconds, and what a crash of the server left behind.
func (c *Client) GC(ctx context.Context, olderThan time.Duration) (g api.Collected, err error) {
	body := map[string]int64{"older_than_seconds": int64(olderThan / time.Second)}
	err = c.call(ctx, request{method: http.MethodPost, path: "/v1/gc", body: body}, &g)
	return g, err
}

// Healthy returns nil if the server is up. It needs no credential. Errors:
// Unavailable.
func (c *Client) Healthy(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodGet, path: "/healthz", again: true}, nil)
}
