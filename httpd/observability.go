package httpd

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandbox/core/fault"
	"sandbox/logs"
)

// queryRoute is the one operation that may answer 413.
const queryRoute = "/v1/observability/query"

// underObservability tells whether an escaped path belongs to the log queries,
// also one that is no route.
func (s *Server) underObservability(path string) bool {
	if s.Hosted {
		path = strings.TrimPrefix(path, "/api")
	}
	rest, ok := strings.CutPrefix(path, "/v1/")
	if s.Prefix != "" {
		rest = strings.TrimPrefix(rest, s.Prefix+"/")
	}
	return ok && strings.HasPrefix(rest, "observability/")
}

// operation is one of the log service's that has a body.
type operation func(ctx context.Context, doc []byte) (logs.Result, error)

func (s *Server) describeLogs(w http.ResponseWriter, r *request) error {
	if err := s.admit(w, r); err != nil {
		return err
	}
	return writeResult(w)(s.Logs.Describe(r.Context()))
}

func (s *Server) queryLogs(w http.ResponseWriter, r *request) error {
	return s.operate(w, r, s.Logs.Query)
}

func (s *Server) searchLogs(w http.ResponseWriter, r *request) error {
	return s.operate(w, r, s.Logs.Search)
}

func (s *Server) aggregateLogs(w http.ResponseWriter, r *request) error {
	return s.operate(w, r, s.Logs.Aggregate)
}

// operate runs an operation on the request's body. It ends when its client
// goes away: the body was read to its end, so that net/http notices.
func (s *Server) operate(w http.ResponseWriter, r *request, run operation) error {
	if err := s.admit(w, r); err != nil {
		return err
	}
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	return writeResult(w)(run(r.Context(), doc))
}

// admit counts an operation of the client's key and tells what it has left.
func (s *Server) admit(w http.ResponseWriter, r *request) error {
	a, err := s.Logs.Admit(r.principal.Sub)
	h := w.Header()
	h.Set("RateLimit-Limit", strconv.Itoa(a.Limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(a.Remaining))
	h.Set("RateLimit-Reset", seconds(a.Reset))
	return err
}

// seconds returns a time as headers have it, rounded up.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(int(math.Ceil(d.Seconds())), 1))
}

// writeResult writes what an operation gave.
func writeResult(w http.ResponseWriter) func(logs.Result, error) error {
	return func(res logs.Result, err error) error {
		defer res.Free()
		if err != nil {
			return err
		}
		pieces, err := res.Document()
		if err != nil {
			return fault.Wrap(fault.Internal, err, "encode the result")
		}
		writePieces(w, http.StatusOK, jsonType, pieces...)
		return nil
	}
}

// problemObject is the body of every failure of the log queries: these members
// and no others (spec, "Problem object").
type problemObject struct {
	Type          string        `json:"type"`
	Title         string        `json:"title"`
	Status        int           `json:"status"`
	Code          logs.Code     `json:"code"`
	Message       string        `json:"message"`
	CorrelationID string        `json:"correlationId"`
	Prerequisite  string        `json:"prerequisite,omitzero"`
	Fields        []fault.Field `json:"fields,omitempty"`
}

var problemType = []string{"application/problem+json"}

// failQuery writes a failure as a problem object.
func (s *Server) failQuery(w *reply, r *request, err error) {
	p := problemOf(r, err)
	row := p.Code.Row()
	if row.Status >= http.StatusInternalServerError {
		s.Log.LogAttrs(r.Context(), slog.LevelError, "log query failed", slog.String("request_id", r.id),
			slog.String("code", string(p.Code)), slog.String("error", p.Message), slog.Any("cause", p.Err))
	}
	if w.status != 0 {
		s.cut(w, r)
		return
	}
	switch {
	case row.Status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case row.Status == http.StatusMethodNotAllowed:
		w.Header().Set("Allow", strings.Join(r.allowed, ", "))
	case p.RetryAfter > 0:
		w.Header().Set("Retry-After", seconds(p.RetryAfter))
	}
	doc, err := encode(problemObject{
		Type: "urn:sandbox:problem:" + string(row.Code), Title: row.Title, Status: row.Status, Code: row.Code,
		Message: p.Message, CorrelationID: r.id, Prerequisite: p.Prerequisite, Fields: p.Fields,
	})
	if err != nil {
		s.Log.LogAttrs(r.Context(), slog.LevelError, "a problem can't be told", slog.String("request_id", r.id), slog.Any("error", err))
	}
	writePieces(w, row.Status, problemType, doc)
}

// codes are those of failures on the way to the log service. What is not among
// them is a fault of ours, which here is one of availability.
var codes = map[fault.Kind]logs.Code{
	fault.Malformed: logs.Malformed, fault.InvalidArgument: logs.Malformed, fault.TooLarge: logs.TooLarge,
	fault.Unauthenticated: logs.Unauthenticated, fault.PermissionDenied: logs.PermissionDenied,
	fault.NotFound: logs.NotFound, fault.MethodNotAllowed: logs.MethodNotAllowed, fault.Timeout: logs.Timeout,
}

func problemOf(r *request, err error) *logs.Problem {
	var p *logs.Problem
	if errors.As(err, &p) {
		return p
	}
	f := fault.Of(err)
	code, known := codes[f.Kind]
	if !known {
		return &logs.Problem{Code: logs.Unavailable, Message: "internal error; the server's log tells more under this correlation id", Err: err}
	}
	if code == logs.TooLarge && (r.route == nil || r.route.Pattern != queryRoute) {
		code = logs.Malformed
	}
	return &logs.Problem{Code: code, Message: f.Message, Fields: f.Fields}
}
