package httpd

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"sandbox/core/fault"
)

// rendering is the form that failures have on a route. It is a property of the
// route.
type rendering interface {
	// told returns the failure as the route's clients may see it, and its
	// status.
	told(r *request, err error) (f *fault.Error, status int)
	// document returns the body for the failure, and the body's media type.
	document(r *request, f *fault.Error, status int) (doc []byte, mediaType []string, err error)
}

// rendering returns the form of r's failures. A path under observability/ that
// is no route has problem objects, too.
func (r *request) rendering() rendering {
	switch {
	case r.route != nil && r.route.failures != nil:
		return r.route.failures
	case r.route == nil && r.observability && !r.misplaced:
		return problems{}
	}
	return envelope{}
}

// fail replies with err. It is the only place where a failure becomes a reply.
func (s *Server) fail(w *reply, r *request, err error) {
	look := r.rendering()
	f, status := look.told(r, err)
	if status >= http.StatusInternalServerError {
		s.logFailure(r, fault.Of(err))
	}
	if w.status != 0 { // the reply has begun, so only a broken connection can report the failure
		s.cut(w, r)
		return
	}
	header := w.Header()
	switch {
	case status == http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case status == http.StatusMethodNotAllowed:
		header.Set("Allow", strings.Join(r.allowed, ", "))
	case f.RetryAfter > 0:
		header.Set("Retry-After", seconds(f.RetryAfter))
	}
	doc, mediaType, err := look.document(r, f, status)
	if err != nil {
		s.Log.LogAttrs(r.Context(), slog.LevelError, "a failure could not be sent to the client", slog.String("request_id", r.id), slog.Any("error", err))
	}
	writePieces(w, status, mediaType, doc)
}

// logFailure logs all that is known of a failure, whose client may not see all of it. It
// is an error where the server or its host is at fault, which a person must look at, and a
// warning where a box, a registry or the log engine is.
func (s *Server) logFailure(r *request, f *fault.Error) {
	attrs := []slog.Attr{slog.String("request_id", r.id), slog.String("code", f.Kind.String()), slog.String("error", f.Message)}
	if f.Hidden != nil {
		attrs = append(attrs, slog.Any("cause", f.Hidden))
	}
	level := slog.LevelWarn
	switch f.Kind {
	case fault.Internal, fault.Config, fault.Storage, fault.Engine:
		level = slog.LevelError
	}
	s.Log.LogAttrs(r.Context(), level, "request failed", attrs...)
}

// ours hides the details of a failure that is the server's fault. id is the
// request's number, under the name that the route's clients know.
func ours(f *fault.Error, id string) *fault.Error {
	if f.Kind == fault.Internal {
		f.Message = "internal error: the server's log has the details under this " + id
	}
	return f
}

// envelope is the form of failures on all routes that name no other form
// (contract, section 6).
type envelope struct{}

// failure is the body of an envelope. Detail is set for one failure only: see
// Server.lookUp.
type failure struct {
	Detail string  `json:"detail,omitzero"`
	Error  problem `json:"error"`
}

type problem struct {
	Code      string        `json:"code"`
	Message   string        `json:"message"`
	Type      string        `json:"type"`
	RequestID string        `json:"request_id"`
	Fields    []fault.Field `json:"fields,omitempty"`
}

func (envelope) told(_ *request, err error) (*fault.Error, int) {
	f := ours(fault.Of(err), "request id")
	status := f.Kind.Row().HTTP
	if status == http.StatusTooManyRequests && f.RetryAfter == 0 {
		f.RetryAfter = time.Second
	}
	return f, status
}

func (envelope) document(r *request, f *fault.Error, status int) ([]byte, []string, error) {
	body := failure{Error: problem{
		Code: f.Kind.String(), Message: f.Message, Type: family(status), RequestID: r.id, Fields: f.Fields,
	}}
	if r.misplaced {
		body.Detail = "Not Found"
	}
	doc, err := encode(body)
	return doc, jsonType, err
}

// family returns the type of an error. A client that does not know the code can
// go by it.
func family(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusConflict:
		return "conflict_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusNotImplemented:
		return "unsupported_error"
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "server_error"
}
