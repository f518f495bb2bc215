package client

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Filter says which boxes a listing has; what is empty leaves none out.
type Filter struct {
	Status api.BoxStatus // Running or Stopped
	Name   string
	Label  string // KEY=VALUE
}

// CreateBox makes a box and starts it. It is made once, also where the request
// had to be sent again. Errors: Image, InvalidArgument, AlreadyExists and
// others of the service.
func (c *Client) CreateBox(ctx context.Context, o options.Box) (api.Box, error) {
	var b api.Box
	err := c.call(ctx, request{
		method: http.MethodPost, path: c.boxes, body: o, again: true,
		header: http.Header{"Idempotency-Key": {rand.Text()}},
	}, &b)
	return b, err
}

// Boxes returns the boxes that the filter leaves, newest first, without their
// environment.
func (c *Client) Boxes(ctx context.Context, f Filter) ([]api.Box, error) {
	query := url.Values{"page_size": {strconv.Itoa(pageSize)}}
	for name, value := range map[string]string{"status": string(f.Status), "name": f.Name, "label": f.Label} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return pages(ctx, c, c.boxes, query, "boxes", func(b api.Box) string { return b.ID })
}

// Box returns a box by its id, its name, or a unique beginning of its id.
// Errors: BoxNotFound, Ambiguous.
func (c *Client) Box(ctx context.Context, ref string) (api.Box, error) {
	return c.box(ctx, request{method: http.MethodGet, again: true}, ref, "")
}

// StartBox starts a stopped box. Errors: BoxNotFound, InvalidState.
func (c *Client) StartBox(ctx context.Context, ref string) (api.Box, error) {
	return c.box(ctx, request{method: http.MethodPost}, ref, ":start")
}

// StopBox stops a box: its processes get SIGTERM, and SIGKILL after grace,
// which is rounded up to seconds. Its disk is kept; where auto_remove removed
// the box, its last record comes back. Errors: BoxNotFound, InvalidState.
func (c *Client) StopBox(ctx context.Context, ref string, grace time.Duration) (api.Box, error) {
	query := url.Values{"timeout_seconds": {strconv.FormatInt(int64((grace+time.Second-1)/time.Second), 10)}}
	return c.box(ctx, request{method: http.MethodPost, query: query}, ref, ":stop")
}

// RemoveBox removes a box; a running one only with force. It gives the box's
// id, or ref where the answer with the id was lost. Errors: BoxNotFound, InvalidState.
func (c *Client) RemoveBox(ctx context.Context, ref string, force bool) (string, error) {
	path, err := c.boxPath(ref, "")
	if err != nil {
		return "", err
	}
	r := request{method: http.MethodDelete, path: path, again: true}
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	removed := struct {
		ID string `json:"id"`
	}{ref}
	err = c.call(ctx, r, &removed)
	return removed.ID, err
}

// box sends a request about a box that is answered with the box.
func (c *Client) box(ctx context.Context, r request, ref, verb string) (b api.Box, err error) {
	if r.path, err = c.boxPath(ref, verb); err == nil {
		err = c.call(ctx, r, &b)
	}
	return b, err
}

// boxPath is the path of a box. What can be no box is answered here: as a
// segment of a path it would lead elsewhere.
func (c *Client) boxPath(ref, verb string, more ...string) (string, error) {
	if ref == "" || ref == "." || ref == ".." {
		return "", fault.New(fault.BoxNotFound, "no box %q", ref)
	}
	path := c.boxes + "/" + escape(ref) + verb
	if len(more) > 0 {
		path += "/" + escape(more...)
	}
	return path, nil
}
