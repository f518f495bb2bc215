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

func (c *Client) pull(ctx context.Context, body map[string]any, progress func(api.ImageProgress)) (api.Image, error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	resp, err := c.send(ctx, request{method: http.MethodPost, path: "/v1/images:pull", body: body, header: header, again: true})
	if err != nil {
		return api.Image{}, err
	}
	defer resp.Body.Close()
	if progress == nil {
		progress = func(api.ImageProgress) {}
	}
	img, err := c.pulled(newSSE(resp.Body), resp.Header, progress)
	if err != nil && !fault.Classified(err) {
		err = c.lost(ctx, err)
	}
	return img, err
}

// pulled reads the events of a pull to the last one.
func (c *Client) pulled(events sse, header http.Header, progress func(api.ImageProgress)) (img api.Image, err error) {
	for {
		m, err := events.next()
		if err != nil {
			return api.Image{}, err
		}
		switch m.kind {
		case api.PullError:
			e := &Error{RequestID: header.Get("X-Request-Id")}
			c.describe(e, m.data, "an event of a pull")
			return api.Image{}, e
		case api.PullImage:
			err := json.Unmarshal(m.data, &img)
			return img, fault.Wrap(fault.Upstream, err, "an image that can't be read")
		case api.PullProgress:
			var p api.ImageProgress
			if err := json.Unmarshal(m.data, &p); err != nil {
				return api.Image{}, fault.Wrap(fault.Upstream, err, "progress that can't be read")
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
