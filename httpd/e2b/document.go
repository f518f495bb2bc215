package e2b

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"sandbox/core/fault"
)

// readJSON reads the body into v. Members that v has not are taken: the protocol
// grows. An empty body leaves v as it is. Errors: Malformed, TooLarge.
func readJSON(r *http.Request, v any) error {
	doc, err := io.ReadAll(r.Body)
	if err != nil {
		return errBody(err)
	}
	if len(doc) == 0 {
		return nil
	}
	return fault.Wrap(fault.Malformed, json.Unmarshal(doc, v), "the body is not the document of this route")
}

// writeJSON writes v as the whole reply. A write that fails means that the client has
// gone, and there is nobody left to tell.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	doc, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "encode the reply")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(doc)))
	w.WriteHeader(status)
	_, _ = w.Write(doc)
	return nil
}

// errBody is the failure of a body that can't be read.
func errBody(err error) error {
	var large *http.MaxBytesError
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &large):
		return fault.New(fault.TooLarge, "the body is larger than the %d bytes allowed", large.Limit)
	case errors.As(err, &late) && late.Timeout():
		return fault.New(fault.Timeout, "the body did not arrive in time")
	}
	return fault.Wrap(fault.Malformed, err, "the body can't be read")
}
