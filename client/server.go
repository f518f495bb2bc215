package client

import (
	"context"
	"net/http"
	"time"
)

// Info is what a server says of itself.
type Info struct {
	Name       string         `json:"name"`
	Version    string         `json:"version"`
	APIVersion string         `json:"api_version"`
	Limits     Limits         `json:"limits"`
	Usage      Usage          `json:"usage"`
	Defaults   map[string]any `json:"defaults"`
	Features   map[string]any `json:"features"`
}

// Limits are the most that boxes can have, and how many there can be.
type Limits struct {
	MaxCPUs       int `json:"max_cpus"`
	MaxMemoryMiB  int `json:"max_memory_mib"`
	MaxDiskSizeGB int `json:"max_disk_size_gb"`
	MaxBoxes      int `json:"max_boxes"`
}

// Usage is what all boxes of a server have together.
type Usage struct {
	Boxes     int `json:"boxes"`
	Running   int `json:"running"`
	CPUs      int `json:"cpus"`
	MemoryMiB int `json:"memory_mib"`
}

// Me is who the server takes us for.
type Me struct {
	Sub           string     `json:"sub"`
	Name          string     `json:"name"`
	PrincipalType string     `json:"principal_type"` // service_account or local
	PathPrefix    *string    `json:"path_prefix"`
	Permissions   []string   `json:"permissions"`
	Environment   string     `json:"environment"`
	ExpiresAt     *time.Time `json:"expires_at"`
}

// Collected is what a garbage collection removed.
type Collected struct {
	Removed        int      `json:"removed"`
	ReclaimedBytes int64    `json:"reclaimed_bytes"`
	Boxes          []string `json:"boxes"`
}

// Info asks for the server's limits, use and defaults. Errors: Unauthenticated.
func (c *Client) Info(ctx context.Context) (i Info, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/v1/info", again: true}, &i)
	return i, err
}

// Me asks whom the server takes us for. Errors: Unauthenticated.
func (c *Client) Me(ctx context.Context) (m Me, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/v1/me", again: true}, &m)
	return m, err
}

// GC removes the boxes that have been stopped or failed for at least
// olderThan, in seconds, and what a crash of the server left.
func (c *Client) GC(ctx context.Context, olderThan time.Duration) (g Collected, err error) {
	body := map[string]int64{"older_than_seconds": int64(olderThan / time.Second)}
	err = c.call(ctx, request{method: http.MethodPost, path: "/v1/gc", body: body}, &g)
	return g, err
}

// Healthy asks whether the server is up. It needs no credential. Errors:
// Unavailable.
func (c *Client) Healthy(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodGet, path: "/healthz", again: true}, nil)
}
