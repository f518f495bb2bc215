package httpd

import (
	"log/slog"
	"net/http"
	"strings"

	"sandbox/core/fault"
)

// failure is the body of every error (contract, section 6). Detail is set for
// one of them alone: see Server.lookUp.
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

// fail writes err: the one place where a failure becomes a reply. The problem
// objects of the log queries, and what OTLP wants, branch off here.
func (s *Server) fail(w *reply, r *request, err error) {
	if r.observability && !r.misplaced {
		s.failQuery(w, r, err)
		return
	}
	f := fault.Of(err)
	if r.route != nil && r.route.Pattern == ingestRoute && f.Kind != fault.Unauthenticated && f.Kind != fault.PermissionDenied {
		s.failExport(w, r, err)
		return
	}
	row := f.Kind.Row()
	if row.HTTP >= http.StatusInternalServerError {
		s.Log.LogAttrs(r.Context(), slog.LevelError, "request failed",
			slog.String("request_id", r.id), slog.String("code", row.Code), slog.String("error", f.Message))
	}
	if w.status != 0 { // in mid-reply: only a broken connection can tell
		s.cut(w, r)
		return
	}
	if f.Kind == fault.Internal {
		f.Message = "internal error; the server's log tells more under this request id"
	}
	body := failure{Error: problem{
		Code: row.Code, Message: f.Message, Type: family(row.HTTP), RequestID: r.id, Fields: f.Fields,
	}}
	if r.misplaced {
		body.Detail = "Not Found"
	}
	switch row.HTTP {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", strings.Join(r.allowed, ", "))
	case http.StatusTooManyRequests:
		if w.Header().Get("Retry-After") == "" {
			w.Header().Set("Retry-After", "1")
		}
	}
	if err := writeJSON(w, row.HTTP, body); err != nil {
		s.Log.LogAttrs(r.Context(), slog.LevelError, "a failure can't be told", slog.String("request_id", r.id), slog.Any("error", err))
	}
}

// family is the type of an error: what a client that does not know the code
// can go by.
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
