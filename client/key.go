package client

import (
	"context"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
)

// NewKey describes a key to be made.
type NewKey struct {
	Name        string     `json:"name"`
	Permissions []string   `json:"permissions"`
	Environment string     `json:"environment,omitempty"` // "" for the server's
	ExpiresAt   *time.Time `json:"expires_at,omitempty"`  // nil: never
}

// Keys lists the API keys. Errors: PermissionDenied (without Keys).
func (c *Client) Keys(ctx context.Context) ([]api.Key, error) {
	var d struct {
		Keys []api.Key `json:"keys"`
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/v1/keys", again: true}, &d)
	return d.Keys, err
}

// CreateKey makes a key and returns it with the full key, which no other call
// returns. Errors: PermissionDenied (also for permissions that the caller's own
// key lacks), InvalidArgument.
func (c *Client) CreateKey(ctx context.Context, n NewKey) (k api.Key, err error) {
	err = c.call(ctx, request{method: http.MethodPost, path: "/v1/keys", body: n}, &k)
	return k, err
}

// DeleteKey ends a key at once. Errors: KeyNotFound, PermissionDenied.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	if id == "" || id == "." || id == ".." { // in a path, these would lead elsewhere
		return fault.New(fault.KeyNotFound, "no key %q", id)
	}
	return c.call(ctx, request{method: http.MethodDelete, path: "/v1/keys/" + escape(id), again: true}, nil)
}
