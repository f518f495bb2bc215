package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/feed"
	"sandbox/core/options"
)

// WatchFiles begins to watch a directory of a running box. It returns once the
// watch stands: no event after that is lost without an [api.Overflow]. Behind the
// last event, an [api.EndOfWatch], Next returns io.EOF; it fails with Unavailable
// where the connection is lost, and then events may be missing. The caller closes
// the watch; it also ends with ctx. Errors: those of StatFile, ResourceExhausted
// (the box's limit of watches).
func (c *Client) WatchFiles(ctx context.Context, box string, o options.WatchFiles) (*feed.Feed[api.FileEvent], error) {
	query := onFile(o.Path, o.User)
	if o.Recursive {
		query.Set("recursive", "true")
	}
	path, err := c.boxPath(box, "", "files")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.send(ctx, request{method: http.MethodGet, path: path + ":watch", query: query, again: true})
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watch{c: c, ctx: ctx, events: newSSE(resp.Body)}
	return feed.New(feed.Small, w.next, cancel, func() { cancel(); _ = resp.Body.Close() }), nil
}

// watch reads the events of a watch.
type watch struct {
	c      *Client
	ctx    context.Context //nolint:containedctx // a watch outlives the call that began it
	events sse
	ended  bool
}

func (w *watch) next() (e api.FileEvent, err error) {
	if w.ended {
		return e, io.EOF
	}
	m, err := w.events.next()
	if fault.Is(err, fault.Upstream) {
		return e, err
	}
	if err != nil {
		return e, w.c.lost(w.ctx, err)
	}
	if err := json.Unmarshal(m.data, &e); err != nil || e.Type == "" {
		return e, fault.Wrap(fault.Upstream, errors.Join(errNoEvent, err), "the server sent an event that can't be read")
	}
	w.ended = e.Type == api.EndOfWatch
	return e, nil
}

var errNoEvent = errors.New("not an event of a watch")
