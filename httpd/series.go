package httpd

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/metrics"
)

// seriesMembers are the members of the query of a series. Each alone asks for one.
var seriesMembers = []string{"from", "to", "step"}

func asksForSeries(query url.Values) bool { return slices.ContainsFunc(seriesMembers, query.Has) }

// boxSeries replies with what a box used over time.
func (s *Server) boxSeries(w http.ResponseWriter, r *request, box string, query url.Values) error {
	q, err := parseSeries(query, time.Now())
	if err != nil {
		return err
	}
	series, err := s.History.Series(r.Context(), box, q)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, series)
}

// parseSeries reads the query of a series. A member that is not known is refused: a
// series of another step or time than was meant looks like the one that was meant.
// Errors: Malformed, InvalidArgument, with fields.
func parseSeries(query url.Values, now time.Time) (metrics.Query, error) {
	q := metrics.Query{To: now}
	var p document.Problems
	for _, name := range slices.Sorted(maps.Keys(query)) {
		p.Unread(!slices.Contains(seriesMembers, name), name, "unknown", "is not known: the members are from, to and step")
		p.When(len(query[name]) > 1, name, "twice", "is there more than once")
	}
	times := map[string]*time.Time{"from": &q.From, "to": &q.To}
	for _, name := range []string{"from", "to"} {
		if query.Has(name) {
			at, ok := document.Moment(query.Get(name), now)
			p.When(!ok, name, "format", "must be a date-time of RFC 3339, or how long ago, such as 90m or 2d")
			*times[name] = at
		}
	}
	if query.Has("step") {
		step, ok := document.Duration(query.Get("step"))
		p.When(!ok || step < time.Second, "step", "format", "must be a duration of at least 1s, such as 30s, 5m or 1d")
		q.Step = step
	}
	return q, p.Err(fault.InvalidArgument)
}
