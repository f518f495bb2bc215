package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"sandbox/api"
	"sandbox/core/options"
)

// SnapshotBox makes an image of the disk of a box as it is now. name is the name of the
// image, which must be free, or "". Errors: BoxNotFound, InvalidArgument, AlreadyExists,
// Unsupported (a box of rootfs_path), ResourceExhausted (too many layers), Timeout.
func (c *Client) SnapshotBox(ctx context.Context, ref, name string) (taken api.Snapshot, err error) {
	r := request{method: http.MethodPost}
	if name != "" {
		r.body = map[string]string{"name": name}
	}
	if r.path, err = c.boxPath(ref, ":snapshot"); err == nil {
		err = c.call(ctx, r, &taken)
	}
	return taken, err
}

// RollbackBox gives a box the disk that it had when a snapshot of it was taken. The commands
// of a box that is up end, and it is started again. Errors: BoxNotFound, ImageNotFound,
// InvalidArgument (no snapshot of this box).
func (c *Client) RollbackBox(ctx context.Context, ref, snapshot string) (api.Box, error) {
	return c.box(ctx, request{method: http.MethodPost, body: map[string]string{"snapshot": snapshot}}, ref, ":rollback")
}

// CloneBox makes boxes that are like a box, with the files of a snapshot of it. If one can't
// be made, none is. Errors: those of SnapshotBox and CreateBox.
func (c *Client) CloneBox(ctx context.Context, ref string, o options.Clone) ([]api.Box, error) {
	body := map[string]any{"n": max(o.N, 1)}
	if o.NamePrefix != "" {
		body["name_prefix"] = o.NamePrefix
	}
	if o.Snapshot != "" {
		body["snapshot"] = o.Snapshot
	}
	if o.Options != nil {
		body["options"] = json.RawMessage(o.Options)
	}
	r := request{method: http.MethodPost, body: body}
	var clones api.Clones
	var err error
	if r.path, err = c.boxPath(ref, ":clone"); err == nil {
		err = c.call(ctx, r, &clones)
	}
	return clones.Boxes, err
}

// DiffBox returns a page of what has changed on the disk of a box. Errors: BoxNotFound,
// ImageNotFound, InvalidArgument (no snapshot of this box).
func (c *Client) DiffBox(ctx context.Context, ref string, o options.Diff) (page api.Changes, err error) {
	r := request{method: http.MethodGet, again: true, query: url.Values{}}
	for name, value := range map[string]string{"from": o.From, "page_token": o.PageToken} {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	if o.PageSize != 0 {
		r.query.Set("page_size", strconv.Itoa(o.PageSize))
	}
	if r.path, err = c.boxPath(ref, "", "diff"); err == nil {
		err = c.call(ctx, r, &page)
	}
	return page, err
}

// Snapshots returns the snapshots of a box, or of all boxes for "", each behind the one that
// it stands on.
func (c *Client) Snapshots(ctx context.Context, box string) ([]api.SnapshotNode, error) {
	r := request{method: http.MethodGet, path: "/v1/snapshots", again: true}
	if box != "" {
		r.query = url.Values{"box": {box}}
	}
	var all api.Snapshots
	err := c.call(ctx, r, &all)
	return all.Snapshots, err
}
