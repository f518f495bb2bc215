package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sandbox/api"
	"sandbox/core/fault"
)

// Images lists the images of the server's store by their names.
func (c *Client) Images(ctx context.Context) ([]api.Image, error) {
	return pages(ctx, c, "/v1/images", url.Values{"page_size": {strconv.Itoa(pageSize)}}, "images", func(i api.Image) string { return i.Name })
}

// Image returns the image that ref names. Errors: ImageNotFound, InvalidArgument.
func (c *Client) Image(ctx context.Context, ref string) (img api.Image, err error) {
	path, err := imagePath(ref)
	if err != nil {
		return api.Image{}, err
	}
	err = c.call(ctx, request{method: http.MethodGet, path: path, again: true}, &img)
	return img, err
}

// imagePath returns the path of an image. Errors: InvalidArgument.
func imagePath(ref string) (string, error) {
	parts := strings.Split(ref, "/")
	if slices.ContainsFunc(parts, func(part string) bool { return part == "" || part == "." || part == ".." }) { // in a path, these would lead elsewhere
		return "", fault.New(fault.InvalidArgument, "%q is no name of an image", ref)
	}
	return "/v1/images/" + escape(parts...), nil
}

// Pull has the server pull an image from its registry, also if the store has one
// of that name. progress may be nil; it is called by the calling goroutine.
// Errors: InvalidArgument, ImageNotFound, Upstream, Image, Storage,
// PermissionDenied (the server pulls none).
func (c *Client) Pull(ctx context.Context, ref string, progress func(api.ImageProgress)) (api.Image, error) {
	return c.pull(ctx, map[string]any{"reference": ref}, progress)
}

// PullMissing does what Pull does unless the server's store has the image.
func (c *Client) PullMissing(ctx context.Context, ref string, progress func(api.ImageProgress)) (api.Image, error) {
	return c.pull(ctx, map[string]any{"reference": ref, "if_missing": true}, progress)
}

func (c *Client) pull(ctx context.Context, body map[string]any, progress func(api.ImageProgress)) (img api.Image, err error) {
	err = c.onImage(ctx, "/v1/images:pull", body, progress, api.PullImage, &img)
	return img, err
}

// onImage asks for work on an image that is told of by events, and reads the
// document of its last event, which has the name last, into made.
func (c *Client) onImage(ctx context.Context, path string, body any, progress func(api.ImageProgress), last string, made any) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	resp, err := c.send(ctx, request{method: http.MethodPost, path: path, body: body, header: header, again: true})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if progress == nil {
		progress = func(api.ImageProgress) {}
	}
	err = c.lastEvent(newSSE(resp.Body), resp.Header, progress, last, made)
	if err != nil && !fault.Classified(err) {
		err = c.lost(ctx, err)
	}
	return err
}

// lastEvent reads the events of work on an image to the last one.
func (c *Client) lastEvent(events sse, header http.Header, progress func(api.ImageProgress), last string, made any) error {
	for {
		m, err := events.next()
		if err != nil {
			return err
		}
		switch m.kind {
		case api.PullError:
			e := &Error{RequestID: header.Get("X-Request-Id")}
			c.describe(e, m.data, "an event of work on an image")
			return e
		case last:
			return fault.Wrap(fault.Upstream, json.Unmarshal(m.data, made), "an image that can't be read")
		case api.PullProgress:
			var p api.ImageProgress
			if err := json.Unmarshal(m.data, &p); err != nil {
				return fault.Wrap(fault.Upstream, err, "progress that can't be read")
			}
			progress(p)
		}
	}
}

// ImportImage has the server make an image called name of a tar: of a root file
// system, a docker archive or an OCI layout. Errors: InvalidArgument (the name),
// Image (the tar is hostile or damaged), Storage, TooLarge.
func (c *Client) ImportImage(ctx context.Context, name string, tar io.Reader) (img api.Image, err error) {
	err = c.call(ctx, request{
		method: http.MethodPost, path: "/v1/images:import", query: url.Values{"name": {name}}, stream: tar,
		// The server can refuse the name before gigabytes were sent.
		header: http.Header{"Content-Type": {"application/x-tar"}, "Expect": {"100-continue"}},
	}, &img)
	return img, err
}

// ExportImage returns the image that ref names as the tar of an OCI layout, which
// the caller closes. how is "" for [api.CompressZstd]. An image that turns out to
// be unfit ends the reading with Upstream. Errors: ImageNotFound,
// InvalidArgument, Image (a layer is missing).
func (c *Client) ExportImage(ctx context.Context, ref string, how api.Compression) (io.ReadCloser, error) {
	query := url.Values{"reference": {ref}}
	if how != "" {
		query.Set("compression", string(how))
	}
	resp, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/images:export", query: query, again: true})
	if err != nil {
		return nil, err
	}
	return &content{resp.Body, c, ctx}, nil
}

// Push is an image that a server is asked to push.
type Push struct {
	Reference   string          `json:"reference"`
	As          string          `json:"as,omitempty"`          // where to; "" is its own name
	Compression api.Compression `json:"compression,omitempty"` // of its layers; "" is that of [api.CompressZstd]
}

// PushImage has the server send an image of its store to a registry. progress may
// be nil; it is called by the calling goroutine. Errors: InvalidArgument,
// ImageNotFound, Upstream, Image, Storage, PermissionDenied (the server pushes
// none).
func (c *Client) PushImage(ctx context.Context, p Push, progress func(api.ImageProgress)) (pushed api.Pushed, err error) {
	err = c.onImage(ctx, "/v1/images:push", p, progress, api.PushDone, &pushed)
	return pushed, err
}

// RemoveImage removes the image that ref names. One that boxes were made from, or
// that another alias stands for, is removed only with force; the boxes keep their
// files. Errors: ImageNotFound, InvalidArgument, InvalidState (it is in use).
func (c *Client) RemoveImage(ctx context.Context, ref string, force bool) error {
	path, err := imagePath(ref)
	if err != nil {
		return err
	}
	query := url.Values{"force": {strconv.FormatBool(force)}}
	return c.call(ctx, request{method: http.MethodDelete, path: path, query: query, again: true}, nil)
}
