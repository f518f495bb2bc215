package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sandbox/core/fault"
)

// A request that may be sent again is sent up to tries times. The pause is
// afterLost after a lost connection, or what the server asks for if that is at most
// maxRetryAfter.
const (
	tries         = 3
	afterLost     = 100 * time.Millisecond
	maxRetryAfter = time.Minute
)

// maxReply bounds a reply that is one JSON document. The largest is that of a run:
// 10 MiB of each stream, which JSON can make six times as large.
const maxReply = 128 << 20

// request is one request of the API.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any       // sent as JSON; nil for none
	stream       io.Reader // sent as it is in place of body, and only once
	again        bool      // may be sent a second time
}

// call sends a request and decodes the JSON reply into out; nil ignores it.
func (c *Client) call(ctx context.Context, r request, out any) error {
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return c.lost(ctx, err)
	case len(doc) > maxReply:
		return fault.New(fault.Upstream, "%s answered with more than %d MiB", c.url, maxReply>>20)
	}
	if err := json.Unmarshal(doc, out); err != nil {
		return fault.Wrap(fault.Upstream, err, "%s answered what is not the JSON expected", c.url)
	}
	return nil
}

// send sends a request, more than once if it may, until a reply says that it has
// succeeded. The caller closes the reply's body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	doc, err := json.Marshal(r.body)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "the request can't be written as JSON")
	}
	lost := false
	for try := 1; ; try++ {
		resp, err := c.once(ctx, r, doc)
		switch {
		case err == nil:
			return resp, nil
		case lost && r.method == http.MethodDelete && isNotFound(err):
			return done(), nil // an earlier try has removed it, and the reply to that was lost
		}
		lost = lost || fault.Is(err, fault.Unavailable)
		wait, again := pause(err)
		if !again || !r.again || try == tries || !sleep(ctx, wait) {
			return nil, err
		}
	}
}

// once sends a request one time.
func (c *Client) once(ctx context.Context, r request, doc []byte) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	body, source := io.Reader(nil), source{Reader: r.stream}
	switch {
	case r.stream != nil:
		body = &source
	case r.body != nil:
		body = bytes.NewReader(doc)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "the request can't be made")
	}
	if r.header != nil {
		req.Header = r.header.Clone()
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.credential.authorize(req.Header)
	resp, err := c.http.Do(req)
	if failed := source.failure.Load(); failed != nil && err != nil {
		return nil, *failed
	}
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, c.refused(resp)
	}
	return resp, nil
}

// isNotFound reports whether err is the server's reply that there is no such thing.
func isNotFound(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == http.StatusNotFound
}

// done returns a reply of success with an empty document.
func done() *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}
}

// source is a body that remembers the failure of its own reader, to tell it from
// that of the connection.
type source struct {
	io.Reader
	failure atomic.Pointer[error]
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failure.Store(&err)
	}
	return n, err
}

// lost classifies the failure of a connection.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("waiting for %s: %w", c.url, ctx.Err())
	}
	var outer *url.Error
	if errors.As(err, &outer) { // its message repeats the method and the URL
		err = outer.Err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Wrap(fault.Unavailable, err, "%s broke off its answer", c.url)
	}
	return fault.Wrap(fault.Unavailable, err, "can't reach %s", c.url)
}

// pause reports whether a request that failed with err may succeed when it is sent
// again, and after which pause.
func pause(err error) (time.Duration, bool) {
	var answer *Error
	if errors.As(err, &answer) {
		return answer.RetryAfter, answer.RetryAfter > 0 && answer.RetryAfter <= maxRetryAfter
	}
	for _, passing := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, passing) {
			return afterLost, true
		}
	}
	return 0, false
}

// sleep waits for d and returns true. It returns false when ctx ends, and at once
// if ctx would end before.
func sleep(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
