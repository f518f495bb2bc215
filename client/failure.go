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

// Error is a failure with which the server replied. It wraps a *fault.Error
// with the server's code, message and fields, so fault.Is and fault.Of work.
type Error struct {
	Status     int           // HTTP status
	RequestID  string        // what the server's log calls the request; "" if it said nothing
	RetryAfter time.Duration // 0 unless the server named one
	Err        error
}

// Error returns the server's message.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the classified failure.
func (e *Error) Unwrap() error { return e.Err }

// maxFailure bounds how much of the reply to a failed request is read.
const maxFailure = 1 << 20

// failure is a service's description of a failure. It is in the member error
// or, for the log queries, is the whole document.
type failure struct {
	Code          *fault.Kind   `json:"code"`
	Message       string        `json:"message"`
	RequestID     string        `json:"request_id"`
	CorrelationID string        `json:"correlationId"`
	Prerequisite  string        `json:"prerequisite"`
	Fields        []fault.Field `json:"fields"`
}

// refused returns the failure that a reply describes.
func (c *Client) refused(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), RetryAfter: retryAfter(resp.Header)}
	doc, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure)) // if reading fails, what was read decides
	c.describe(e, doc, resp.Status)
	return e
}

// describe sets in e what the document of a failure tells. answer says which
// answer it was, for one that is no such document.
func (c *Client) describe(e *Error, doc []byte, answer string) {
	var d struct {
		Error *failure `json:"error"`
		failure
	}
	err := json.Unmarshal(doc, &d)
	if d.Error == nil {
		d.Error = &d.failure
	}
	if err != nil || d.Error.Code == nil || d.Error.Message == "" {
		e.Err = fault.New(kindOf(e.Status), "%s answered %s, which is not an answer of a sandbox service: check the address (a hosted service's ends in /api)",
			c.url, answer)
		return
	}
	e.RequestID = cmp.Or(e.RequestID, d.Error.RequestID, d.Error.CorrelationID)
	e.Status = cmp.Or(e.Status, d.Error.Code.Row().HTTP)
	e.Err = &fault.Error{Kind: *d.Error.Code, Message: d.Error.Message, Fields: d.Error.Fields, Prerequisite: d.Error.Prerequisite}
}

// retryAfter returns the header's number of seconds.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// kindOf classifies a status for which the reply has no code. Such a reply
// comes from something in front of the service, or from something that is not
// the service.
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
