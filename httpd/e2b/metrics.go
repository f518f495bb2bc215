package e2b

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/document"
	"sandbox/core/fault"
	"sandbox/metrics"
)

// measured is what is measured of a box at one time. What is not known is 0.
type measured struct {
	At        time.Time `json:"timestamp"`
	Unix      int64     `json:"timestampUnix"`
	CPUs      int       `json:"cpuCount"`
	CPUUsed   float64   `json:"cpuUsedPct"` // of all CPUs of the box, mean since the one before
	MemUsed   int64     `json:"memUsed"`    // bytes
	MemTotal  int64     `json:"memTotal"`
	MemCache  int64     `json:"memCache"`
	DiskUsed  int64     `json:"diskUsed"`
	DiskTotal int64     `json:"diskTotal"`
}

// showMetrics tells what a box has used since a time, by default since its start. The
// last measurement is made now, unless another end was asked for.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.up(r)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	q, err := parseInterval(r.URL.Query(), rec, now)
	if err != nil {
		return err
	}
	all, err := s.series(r.Context(), rec, q, now)
	if err != nil {
		return err
	}
	if !q.To.Before(now) && !q.From.After(now) {
		m, err := s.Runtime.At(rec.ID).Metrics(r.Context())
		if err != nil {
			return err
		}
		all = append(all, present(rec, m, now))
	}
	return writeJSON(w, http.StatusOK, all)
}

// parseInterval reads from when to when is asked for, in seconds since 1970. The second
// of the end belongs to it. Errors: InvalidArgument.
func parseInterval(query url.Values, rec core.Record, now time.Time) (metrics.Query, error) {
	q := metrics.Query{From: rec.CreatedAt, To: now}
	if rec.StartedAt != nil {
		q.From = *rec.StartedAt
	}
	for name, at := range map[string]*time.Time{"start": &q.From, "end": &q.To} {
		if !query.Has(name) {
			continue
		}
		seconds, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil || seconds < 0 || seconds > math.MaxInt32 {
			return q, document.Invalid(name, "range", "must be seconds since 1970")
		}
		*at = time.Unix(seconds, 0)
	}
	if query.Has("end") {
		q.To = q.To.Add(time.Second)
	}
	if query.Has("start") && query.Has("end") && !q.From.Before(q.To) {
		return q, document.Invalid("start", "interval", "must not be after end")
	}
	return q, nil
}

// series returns what was measured of a box in an interval. A log engine that does not
// answer leaves it empty, and so does a box that was not there yet.
func (s *Server) series(ctx context.Context, rec core.Record, q metrics.Query, now time.Time) ([]measured, error) {
	all := []measured{}
	if !q.From.Before(q.To) || !q.From.Before(now) {
		return all, nil
	}
	series, err := s.History.Series(ctx, rec.ID, q)
	if fault.Is(err, fault.Unavailable) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for _, p := range series.Points {
		d := limits(rec, p.At)
		d.CPUUsed, d.MemUsed, d.MemCache = p.CPUPercent/float64(rec.Options.CPUs), p.MemoryBytes, p.CacheBytes
		d.DiskUsed = orZero(p.DiskBytes)
		all = append(all, d)
	}
	return all, nil
}

// present returns what is measured of a box now. The CPU's share is the mean since its
// start.
func present(rec core.Record, m api.BoxMetrics, now time.Time) measured {
	d := limits(rec, now)
	d.CPUUsed = orZero(m.CPUPercent) / float64(rec.Options.CPUs)
	d.MemUsed, d.MemCache, d.DiskUsed = orZero(m.MemoryBytes), orZero(m.CacheBytes), orZero(m.DiskBytes)
	return d
}

// limits returns a measurement that has the limits of a box alone.
func limits(rec core.Record, at time.Time) measured {
	return measured{
		At: at, Unix: at.Unix(), CPUs: rec.Options.CPUs,
		MemTotal: int64(rec.Options.MemoryMiB) << 20, DiskTotal: int64(rec.Options.DiskSizeGB) << 30,
	}
}

// orZero returns what n points at, or zero where there is nothing.
func orZero[N int64 | float64](n *N) N {
	if n == nil {
		return 0
	}
	return *n
}
