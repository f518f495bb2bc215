package logs

import (
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/document"
	"sandbox/core/fault"
)

// Filter says which rows to return, and how many.
type Filter struct {
	From, To time.Time // From <= Timestamp < To
	Service  string    // "" for all
	Severity string    // one of Severities; "" for all
	Text     string    // a text that Body contains; "" for any Body
	TraceID  string    // "" for all
	Limit    int
}

// Limits of the documents (spec, "Limits").
const (
	MaxInterval  = 7 * 24 * time.Hour
	MaxLimit     = 10000
	DefaultLimit = 100
	maxService   = 255
	maxText      = 1024
)

// severities are the names that rows can have. The name at index i begins at
// OpenTelemetry's severity number 4*i+1.
var severities = []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}

// Severities returns the names of severities, the lowest first.
func Severities() []string { return slices.Clone(severities) }

// filterDocument holds the members that search and aggregate have in common.
type filterDocument struct {
	From     jsontext.Value `json:"from"`
	To       jsontext.Value `json:"to"`
	Service  jsontext.Value `json:"service"`
	Severity jsontext.Value `json:"severity"`
	Text     jsontext.Value `json:"text"`
	TraceID  jsontext.Value `json:"traceId"`
	Limit    jsontext.Value `json:"limit"`
}

var traceID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-fA-F0-9]{32}$`) //nolint:forbidigo // on first use
})

func (d filterDocument) read(c *checks) Filter {
	f := Filter{
		From: c.moment("from", d.From), To: c.moment("to", d.To),
		Limit: c.whole("limit", d.Limit, DefaultLimit),
	}
	f.Service, _ = c.text("service", d.Service, 1, maxService)
	f.Text, _ = c.text("text", d.Text, 1, maxText)
	f.Severity = c.name("severity", d.Severity, severities)
	f.TraceID = c.matching("traceId", d.TraceID, traceID())
	c.When(f.Limit < 1 || f.Limit > MaxLimit, "limit", "range", "must be 1 to %d", MaxLimit)
	return f
}

// checkInterval checks the interval. It is called after everything else was
// found valid.
func (f Filter) checkInterval() error {
	var p document.Problems
	p.When(!f.From.Before(f.To), "from", "interval", "must be before to")
	p.When(f.To.Sub(f.From) > MaxInterval, "to", "interval", "must be at most seven days after from") // Sub returns the largest Duration for what is longer
	return p.Err(fault.InvalidInterval)
}

// decodeSearch reads the body of a search. Errors: Malformed and
// InvalidInterval, with fields.
func decodeSearch(doc []byte) (Filter, error) {
	var d filterDocument
	var c checks
	if err := c.read(doc, &d); err != nil {
		return Filter{}, err
	}
	f := d.read(&c)
	if err := c.problem(); err != nil {
		return Filter{}, err
	}
	return f, f.checkInterval()
}

// Grouping says how rows are counted.
type Grouping struct {
	Filter
	Service, Severity, Time bool // the columns by which rows are grouped
	Bucket                  time.Duration
}

type groupingDocument struct {
	filterDocument
	GroupBy       jsontext.Value `json:"groupBy"`
	BucketSeconds jsontext.Value `json:"bucketSeconds"`
}

const defaultBucket = 300

// decodeAggregate reads the body of an aggregate. Errors: Malformed and
// InvalidInterval, with fields.
func decodeAggregate(doc []byte) (Grouping, error) {
	var d groupingDocument
	var c checks
	if err := c.read(doc, &d); err != nil {
		return Grouping{}, err
	}
	g := Grouping{Filter: d.read(&c)}
	by := c.list("groupBy", d.GroupBy, 1, 3, []string{"service"})
	for _, s := range by {
		c.When(!slices.Contains([]string{"service", "severity", "time"}, s), "groupBy", "value", "has %.40q and may have service, severity and time", s)
	}
	g.Service, g.Severity, g.Time = slices.Contains(by, "service"), slices.Contains(by, "severity"), slices.Contains(by, "time")
	seconds := c.whole("bucketSeconds", d.BucketSeconds, defaultBucket)
	c.When(!slices.Contains([]int{60, 300, 3600, 86400}, seconds), "bucketSeconds", "value", "must be 60, 300, 3600 or 86400")
	g.Bucket = time.Duration(seconds) * time.Second
	if err := c.problem(); err != nil {
		return Grouping{}, err
	}
	return g, g.checkInterval()
}
