package e2b

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandbox/core"
	"sandbox/core/document"
	"sandbox/httpd/cursor"
)

const maxPage = 100 // boxes, of a page

// filter says which boxes a list shows, and in which order.
type filter struct {
	states   []string // empty for all
	metadata map[string]string
	template string    // "" for all
	after    time.Time // the boxes that were started later
	oldest   bool      // the oldest first
	limit    int
	from     cursor.Place // the last box of the page before
}

// listBoxes lists the boxes that run or are paused, a page at a time. A header has
// the token of the next page.
func (s *Server) listBoxes(w http.ResponseWriter, r *http.Request) error {
	f, err := parseFilter(r.URL.Query())
	if err != nil {
		return err
	}
	f.template = s.imageOf(f.template)
	all, err := s.Runtime.List(r.Context())
	if err != nil {
		return err
	}
	page, next := f.page(all)
	if next != "" {
		w.Header().Set("X-Next-Token", next)
	}
	return writeJSON(w, http.StatusOK, page)
}

// imageOf returns the image of a template that a filter names; "" stays what it is.
func (s *Server) imageOf(template string) string {
	if template == "" {
		return ""
	}
	return s.image(template)
}

// parseFilter reads a query. Errors: InvalidArgument.
func parseFilter(query url.Values) (f filter, err error) {
	f = filter{template: query.Get("template"), oldest: query.Get("order") == "asc", limit: maxPage}
	if text := query.Get("limit"); text != "" {
		if f.limit, err = strconv.Atoi(text); err != nil || f.limit < 1 {
			return f, document.Invalid("limit", "range", "must be a number of at least 1")
		}
		f.limit = min(f.limit, maxPage)
	}
	if states := query.Get("state"); states != "" {
		f.states = strings.Split(states, ",")
	}
	if text := query.Get("startedAfter"); text != "" {
		if f.after, err = time.Parse(time.RFC3339, text); err != nil {
			return f, document.Invalid("startedAfter", "value", "must be a time as in RFC 3339")
		}
	}
	if f.metadata, err = parseMetadata(query.Get("metadata")); err != nil {
		return f, err
	}
	var ok bool
	if f.from, ok = cursor.Parse(query.Get("nextToken")); !ok {
		return f, document.Invalid("nextToken", "value", "must be the token of an earlier page")
	}
	return f, nil
}

// parseMetadata reads pairs that are themselves a query string, in which SDKs have
// escaped each text once more. Errors: InvalidArgument.
func parseMetadata(text string) (map[string]string, error) {
	pairs, err := url.ParseQuery(text)
	metadata := map[string]string{}
	for key, values := range pairs {
		if len(values) > 0 && err == nil {
			if key, err = url.PathUnescape(key); err == nil {
				metadata[key], err = url.PathUnescape(values[0])
			}
		}
	}
	if err != nil {
		return nil, document.Invalid("metadata", "value", "must be pairs of key=value, escaped as in a query")
	}
	return metadata, nil
}

// page returns the boxes of a page, and the token of the next page or "".
func (f filter) page(all []core.Record) (page []described, next string) {
	shown := slices.DeleteFunc(slices.Clone(all), func(rec core.Record) bool { return !f.shows(rec) })
	slices.SortFunc(shown, func(a, b core.Record) int { return f.order(placeOf(a), placeOf(b)) })
	page = []described{}
	for i, rec := range shown {
		if len(page) == f.limit {
			return page, placeOf(shown[i-1]).String()
		}
		page = append(page, describe(rec))
	}
	return page, ""
}

func (f filter) shows(rec core.Record) bool {
	if !rec.Status.Up() || len(f.states) > 0 && !slices.Contains(f.states, string(rec.Status)) {
		return false
	}
	if f.template != "" && rec.Options.Image != f.template || !placeOf(rec).At.After(f.after) {
		return false
	}
	for key, value := range f.metadata {
		if got, ok := rec.Options.Labels[key]; !ok || got != value {
			return false
		}
	}
	return f.from.ID == "" || f.order(f.from, placeOf(rec)) < 0
}

func placeOf(rec core.Record) cursor.Place {
	return cursor.Place{At: describe(rec).StartedAt, ID: rec.ID}
}

// order compares two places as [slices.SortFunc] wants it.
func (f filter) order(a, b cursor.Place) int {
	n := b.At.Compare(a.At)
	if f.oldest {
		n = -n
	}
	if n == 0 {
		n = strings.Compare(a.ID, b.ID)
	}
	return n
}
