package client

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"sandbox/core/fault"
)

// Error is a failure that the server answered with. It wraps a *fault.Error
// with the server's code, message and fields, so fault.Is and fault.Of work.
type Error struct {
	Status     int           // of HTTP
	RequestID  string        // what the server's log calls the request; "" if it said nothing
	RetryAfter time.Duration // 0 unless the server named one
	Err        error
}

// Error returns the server's message.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the classified failure.
func (e *Error) Unwrap() error { return e.Err }

// maxFailure bounds what is read of a reply that tells of a failure.
const maxFailure = 1 << 20

// failure is what a service tells of a failure: in the member error, or, as the
// log queries do, as the document.
type failure struct {
	Code          *fault.Kind   `json:"code"`
	Message       string        `json:"message"`
	RequestID     string        `json:"request_id"`
	CorrelationID string        `json:"correlationId"`
	Prerequisite  string        `json:"prerequisite"`
	Fields        []fault.Field `json:"fields"`
}

// refused makes a failure of a reply.
func (c *Client) refused(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), RetryAfter: retryAfter(resp.Header)}
	doc, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure)) // what came of it is judged by itself
	var d struct {
		Error *failure `json:"error"`
		failure
	}
	err := json.Unmarshal(doc, &d)
	if d.Error == nil {
		d.Error = &d.failure
	}
	if err != nil || d.Error.Code == nil || d.Error.Message == "" {
		e.Err = fault.New(kindOf(resp.StatusCode), "%s answered %s, not as a sandbox service does; is that its address? (a hosted one ends in /api)",
			c.url, resp.Status)
		return e
	}
	e.RequestID = cmp.Or(e.RequestID, d.Error.RequestID, d.Error.CorrelationID)
	e.Err = &fault.Error{Kind: *d.Error.Code, Message: d.Error.Message, Fields: d.Error.Fields, Prerequisite: d.Error.Prerequisite}
	return e
}

// retryAfter reads the header's number of seconds.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// kindOf classifies a status where there is no code: something in front of the
// service has answered, or something else.
func kindOf(status int) fault.Kind {
	switch status {
	case http.StatusUnauthorized:
		return fault.Unauthenticated
	case http.StatusForbidden:
		return fault.PermissionDenied
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return fault.TooLarge
	case http.StatusTooManyRequests:
		return fault.RateLimited
	case http.StatusServiceUnavailable:
		return fault.Unavailable
	case http.StatusGatewayTimeout:
		return fault.Timeout
	}
	return fault.Upstream
}
