package httpd

import (
	"errors"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"sandbox/core/fault"
	"sandbox/logs/ingest"
)

// problems is how failures of the log queries look: each is a problem object
// (contract, section 9).
type problems struct {
	// largeStatement says that the route answers 413.
	largeStatement bool
}

// problemObject has these members and no others.
type problemObject struct {
	Type          string        `json:"type"`
	Title         string        `json:"title"`
	Status        int           `json:"status"`
	Code          fault.Kind    `json:"code"`
	Message       string        `json:"message"`
	CorrelationID string        `json:"correlationId"`
	Prerequisite  string        `json:"prerequisite,omitzero"`
	Fields        []fault.Field `json:"fields,omitempty"`
}

var problemType = []string{"application/problem+json"}

// told keeps to the statuses that the operations may answer: a value that is not
// allowed is part of a body that can't be read, and what has no title, such as a
// fault of ours, means that they are not available.
func (p problems) told(_ *request, err error) (*fault.Error, int) {
	f := ours(fault.Of(err), "correlation id")
	switch {
	case f.Kind == fault.InvalidArgument, f.Kind == fault.TooLarge && !p.largeStatement:
		f.Kind = fault.Malformed
	case f.Kind.Row().Title == "":
		f.Kind = fault.Unavailable
	}
	return f, f.Kind.Row().HTTP
}

func (problems) document(r *request, f *fault.Error, status int) ([]byte, []string, error) {
	row := f.Kind.Row()
	doc, err := encode(problemObject{
		Type: "urn:sandbox:problem:" + row.Code, Title: row.Title, Status: status, Code: f.Kind,
		Message: f.Message, CorrelationID: r.id, Prerequisite: f.Prerequisite, Fields: f.Fields,
	})
	return doc, problemType, err
}

// otlp is how failures of an export look: a google.rpc.Status in the encoding
// of the request, and a status that says whether to come again.
type otlp struct{}

func (otlp) told(r *request, err error) (*fault.Error, int) {
	f, status := envelope{}.told(r, err)
	switch f.Kind {
	case fault.Internal, fault.Canceled, fault.Upstream, fault.Storage:
		status = http.StatusServiceUnavailable
	case fault.Malformed:
		if errors.Is(err, errMedia) {
			status = http.StatusUnsupportedMediaType
		}
	}
	if f.RetryAfter = 0; status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		f.RetryAfter = time.Second
	}
	return f, status
}

func (otlp) document(r *request, f *fault.Error, _ int) ([]byte, []string, error) {
	encoding, _ := r.encoding()
	if encoding == ingest.JSON {
		doc, err := encode(map[string]string{"message": f.Message})
		return doc, otlpTypes[encoding], err
	}
	return protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), f.Message), otlpTypes[encoding], nil
}
