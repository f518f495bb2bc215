package httpd

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/spool"
)

// This file reads a request's parameters: the segments of its path, its query
// string and its headers. Bodies are read in request.go.

// param returns a parameter of the path, unescaped and without a verb.
func (r *request) param(name string) string { return r.params.ByName(name) }

// repeated are the members of query strings that may be given more than once.
var repeated = map[string]bool{"label": true, "build_arg": true}

// query parses the query string. A member that is given twice is refused: what is in front
// of the daemon may go by the other one. Errors: Malformed, InvalidArgument.
func (r *request) query() (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(fault.Malformed, err, "the query string can't be read")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) > 1 && !repeated[name] {
			return nil, document.Invalid(name, "value", "must be given once")
		}
	}
	return values, nil
}

// flag reads a member of the query string that is true or false; a missing one is
// false. Errors: InvalidArgument.
func flag(query url.Values, name string) (bool, error) {
	switch query.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, document.Invalid(name, "value", "must be true or false")
}

// number reads a member of the query string into n, which keeps its value if the
// member is left out. Errors: InvalidArgument.
func number(query url.Values, name string, n *int, low, high int) error {
	if !query.Has(name) {
		return nil
	}
	got, err := strconv.Atoi(query.Get(name))
	if err != nil {
		return document.Invalid(name, "range", "must be a number from "+strconv.Itoa(low)+" to "+strconv.Itoa(high))
	}
	*n = got
	return within(name, got, low, high)
}

// within refuses a number that is not from low to high. Errors: InvalidArgument.
func within(name string, n, low, high int) error {
	var p document.Problems
	p.Within(name, n, low, high)
	return p.Err(fault.InvalidArgument)
}

// lastEvent returns the number of the last event that a client has seen: its
// stream goes on after it. 0 means from the beginning.
func (r *request) lastEvent() (last int64, err error) {
	query, err := r.query()
	if err != nil {
		return 0, err
	}
	for _, at := range []struct{ name, value string }{{"after", query.Get("after")}, {"Last-Event-ID", r.Header.Get("Last-Event-ID")}} {
		if at.value == "" {
			continue
		}
		if last, err = count(at.name, at.value, "must be the number of an event"); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// attachment is how a client asks to be attached to an exec.
type attachment struct {
	skip    [2]int64 // bytes of each stream that the client has already
	resume  bool     // these are what the last client had when it detached
	observe bool     // the client only reads, beside all others
}

// attachment reads it from the query. Errors: Malformed, InvalidArgument.
func (r *request) attachment() (a attachment, err error) {
	query, err := r.query()
	if err != nil {
		return a, err
	}
	if a.resume, err = flag(query, "resume"); err != nil {
		return a, err
	}
	if a.observe = query.Get("mode") == "observe"; query.Has("mode") && !a.observe {
		return a, document.Invalid("mode", "value", "must be observe, or left out")
	}
	names := [...]string{spool.Stdout: "after_stdout", spool.Stderr: "after_stderr"}
	for stream, name := range names {
		if !query.Has(name) {
			continue
		}
		if a.skip[stream], err = count(name, query.Get(name), "must be a number of bytes"); err != nil {
			return a, err
		}
	}
	return a, nil
}

// count parses a number that must not be negative. Errors: InvalidArgument.
func count(name, value, message string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, document.Invalid(name, "range", message)
	}
	return n, nil
}

// maxKeyLen bounds an Idempotency-Key, in bytes (contract, section 2).
const maxKeyLen = 255

// idempotencyKey returns a create's Idempotency-Key, or "" if it has none.
// Errors: InvalidArgument.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	if key := values[0]; len(values) > 1 || key == "" || len(key) > maxKeyLen || strings.ContainsFunc(key, invisible) {
		return "", document.Invalid("Idempotency-Key", "value", "must be one header of 1 to 255 visible characters")
	}
	return values[0], nil
}
