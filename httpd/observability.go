package httpd

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandbox/core/fault"
	"sandbox/logs"
)

// underObservability reports whether an escaped path belongs to the log
// queries. It may be a path that is no route.
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

// operation is one of the log service's operations that have a body.
type operation func(ctx context.Context, doc []byte) (logs.Result, error)

func (s *Server) describeLogs(w http.ResponseWriter, r *request) error {
	if err := s.admit(w.Header(), r); err != nil {
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

// operate runs an operation on the request's body. The operation ends when its
// client disconnects. net/http notices that only because the body was read to
// its end.
func (s *Server) operate(w http.ResponseWriter, r *request, run operation) error {
	if err := s.admit(w.Header(), r); err != nil {
		return err
	}
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	return writeResult(w)(run(r.Context(), doc))
}

// admit counts an operation of the client's key and writes what the key has
// left into headers, if these are not nil. A request over the local socket has no key and no rate
// limit.
func (s *Server) admit(h http.Header, r *request) error {
	if r.by == ByFile {
		return nil
	}
	a, err := s.Logs.Admit(r.principal.Sub)
	if h == nil {
		return err
	}
	h.Set("RateLimit-Limit", strconv.Itoa(a.Limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(a.Remaining))
	h.Set("RateLimit-Reset", seconds(a.Reset))
	return err
}

// seconds returns a time in the format of headers, rounded up to seconds.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(int(math.Ceil(d.Seconds())), 1))
}

// writeResult returns a function that writes the outcome of an operation.
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
