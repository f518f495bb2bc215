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

// call sends a request, more than once if it may, and decodes the JSON reply into
// out; nil ignores it.
func (c *Client) call(ctx context.Context, r request, out any) error {
	reply := []byte("{}")
	err := c.repeat(ctx, r, func(doc []byte) error {
		resp, err := c.once(ctx, r, doc)
		if err != nil {
			return err
		}
		all, err := c.read(ctx, resp)
		if err == nil {
			reply = all
		}
		return err
	})
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(reply, out); err != nil {
		return fault.Wrap(fault.Upstream, err, "%s sent an answer that is not the expected JSON", c.url)
	}
	return nil
}

// read reads a reply to its end and closes it.
func (c *Client) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, c.lost(ctx, err)
	case len(doc) > maxReply:
		return nil, fault.New(fault.Upstream, "%s sent an answer of more than %d MiB", c.url, maxReply>>20)
	}
	return doc, nil
}

// send sends a request, more than once if it may, until a reply says that it has
// succeeded. The caller closes the reply's body.
func (c *Client) send(ctx context.Context, r request) (resp *http.Response, err error) {
	err = c.repeat(ctx, r, func(doc []byte) (err error) {
		resp, err = c.once(ctx, r, doc)
		return err
	})
	return resp, err
}

// repeat calls try with the body of a request until it succeeds, as often as the
// request may be sent.
func (c *Client) repeat(ctx context.Context, r request, try func(doc []byte) error) error {
	doc, err := json.Marshal(r.body)
	if err != nil {
		return fault.Wrap(fault.InvalidArgument, err, "the request can't be written as JSON")
	}
	begun := false
	for n := 1; ; n++ {
		err := try(doc)
		if begun && r.method == http.MethodDelete && isNotFound(err) {
			return nil // an earlier try has removed it, though its reply was lost or told of what could not be cleaned up
		}
		begun = begun || !fault.Is(err, fault.RateLimited) && !errors.Is(err, syscall.ECONNREFUSED)
		wait, again := pause(err)
		if !again || !r.again || n == tries || !sleep(ctx, wait) {
			return err
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
		return fault.Wrap(fault.Unavailable, err, "the answer of %s was cut off", c.url)
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
