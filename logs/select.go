package logs

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandbox/logs/clickhouse"
	"sandbox/logs/sql"
)

// condition builds the text that follows WHERE. Values are not in the text but
// in parameters.
type condition struct {
	terms  []string
	params map[string]string
}

func (c *condition) and(term string) { c.terms = append(c.terms, term) }

// value adds a parameter and returns its placeholder.
func (c *condition) value(kind, text string) string {
	name := "p" + strconv.Itoa(len(c.params))
	c.params[name] = text
	return "{" + name + ":" + kind + "}"
}

// where returns a filter's condition on a table with the given schema, for the
// rows between two times.
func (f Filter) where(s clickhouse.Schema, from, to time.Time) *condition {
	c := &condition{params: map[string]string{}}
	c.during(s, from, to)
	if f.Service != "" {
		c.and("ServiceName = " + c.value("String", f.Service))
	}
	if f.Severity != "" {
		low := 4*slices.Index(severities, f.Severity) + 1
		c.and(fmt.Sprintf("(SeverityNumber BETWEEN %d AND %d OR SeverityNumber = 0 AND upper(SeverityText) = '%s')", low, low+3, f.Severity))
	}
	if f.TraceID != "" { // the index on the column can look up whole values only
		c.and("TraceId IN (" + c.value("String", strings.ToLower(f.TraceID)) + ", " + c.value("String", strings.ToUpper(f.TraceID)) + ", " + c.value("String", f.TraceID) + ")")
	}
	if f.Text != "" {
		c.contains(f.Text)
	}
	return c
}

// contains adds the condition that Body contains a text, in any case of all
// Unicode. The engine's own functions for that miss letters whose cases differ
// in length, or that have three cases. Its regular expressions miss none, but
// they are slow and can't use an index. So a condition on lower(Body), which
// can, comes first.
func (c *condition) contains(text string) {
	all, whole := spellings(text)
	var plain, patterns []string
	for _, s := range all {
		plain = append(plain, c.value("String", s))
		patterns = append(patterns, "lower(Body) LIKE "+c.value("String", "%"+wildcards.Replace(s)+"%"))
	}
	c.and("multiSearchAny(lower(Body), [" + strings.Join(plain, ", ") + "])")
	if word().MatchString(all[0]) { // an index of words is used for LIKE only
		c.and("(" + strings.Join(patterns, " OR ") + ")")
	}
	if !whole {
		c.and("match(Body, " + c.value("String", anyCase(text)) + ")")
	}
}

// wildcards escapes the characters to which LIKE gives a special meaning.
var wildcards = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// word matches a text that holds a whole word, with a character before and
// behind it: OpenTelemetry's index does not hold parts of words.
var word = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^0-9a-z\x80-\x{10FFFF}][0-9a-z]+[^0-9a-z\x80-\x{10FFFF}]`) //nolint:forbidigo // on first use
})

// during adds the condition that a row's time is in an interval. A bound that
// the column's type can't hold is replaced by the nearest one that it can hold,
// which changes nothing about the rows that match.
func (c *condition) during(s clickhouse.Schema, from, to time.Time) {
	column := "Timestamp"
	if !inDateTime(from) || !inDateTime(to) {
		// The table's key has a type whose range is 1970 to 2106. With times
		// outside of it the engine would skip rows that match.
		column = "identity(Timestamp)"
	} else {
		c.seconds(s, from, to)
	}
	c.and(column + " >= fromUnixTimestamp64Nano(" + c.value("Int64", nanoseconds(from)) + ")")
	c.and(column + " < fromUnixTimestamp64Nano(" + c.value("Int64", nanoseconds(to)) + ")")
}

// seconds adds a condition that the table's key can use. Times are rounded down
// in it.
func (c *condition) seconds(s clickhouse.Schema, from, to time.Time) {
	low := "toDateTime(" + c.value("UInt32", strconv.FormatInt(from.Unix(), 10)) + ")"
	high := "toDateTime(" + c.value("UInt32", strconv.FormatInt(to.Unix(), 10)) + ")"
	if s.HasSeconds() {
		c.and("TimestampTime >= " + low)
		c.and("TimestampTime <= " + high)
	}
	if s.FiveMinutes() {
		c.and("toStartOfFiveMinutes(Timestamp) >= toStartOfFiveMinutes(" + low + ")")
		c.and("toStartOfFiveMinutes(Timestamp) <= toStartOfFiveMinutes(" + high + ")")
	}
}

// inDateTime reports whether the type DateTime can hold a time.
func inDateTime(t time.Time) bool { return t.Unix() >= 0 && t.Unix() < math.MaxUint32 }

func nanoseconds(t time.Time) string {
	n := t.UnixNano()
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		n = math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		n = math.MaxInt64
	}
	return strconv.FormatInt(n, 10)
}

// search returns the statement that reads the newest rows of a filter, in a
// part of its interval.
func (f Filter) search(s clickhouse.Schema, from, to time.Time, limit int) clickhouse.Request {
	var columns, order []string
	for _, c := range s.Columns {
		if c.Ordinary() {
			columns = append(columns, sql.QuoteName(c.Name))
		}
		if c.IsInSortingKey == 1 && c.Name != "Timestamp" {
			order = append(order, sql.QuoteName(c.Name))
		}
	}
	order = append(append([]string{"Timestamp DESC"}, order...), "TraceId", "SpanId", "Body")
	where := f.where(s, from, to)
	return clickhouse.Request{
		SQL: "SELECT " + strings.Join(columns, ", ") + " FROM otel.otel_logs WHERE " + strings.Join(where.terms, " AND ") +
			" ORDER BY " + strings.Join(order, ", ") + " LIMIT " + strconv.Itoa(limit),
		Params: where.params,
	}
}

// severityOf is the expression for the name of a row's severity.
var severityOf = func() string {
	var b strings.Builder
	b.WriteString("multiIf(")
	for i, name := range severities {
		fmt.Fprintf(&b, "SeverityNumber BETWEEN %d AND %d, '%s', ", 4*i+1, 4*i+4, name)
	}
	return b.String() + "SeverityNumber = 0 AND upper(SeverityText) IN ('" + strings.Join(severities, "', '") + "'), upper(SeverityText), '')"
}()

// bucket returns the expression for the start of a row's time bucket, in UTC.
// The engine's own function for this returns a type whose range is 1970 to
// 2106.
func bucket(width time.Duration) string {
	const nanoseconds = "toUnixTimestamp64Nano(toDateTime64(Timestamp, 9))"
	// intDiv rounds towards zero, and time before 1970 is negative.
	return fmt.Sprintf("fromUnixTimestamp64Second(intDiv(%[1]s - if(%[1]s < 0, %[2]d, 0), %[3]d) * %[4]d, 'UTC')",
		nanoseconds, int64(width)-1, int64(width), int64(width/time.Second))
}

// aggregate returns the statement that counts rows.
func (g Grouping) aggregate(s clickhouse.Schema) clickhouse.Request {
	var columns, keys, order, rest []string
	add := func(asked bool, expression, name string) bool {
		if asked {
			columns = append(columns, expression+" AS "+name)
			keys = append(keys, strconv.Itoa(len(columns)))
		}
		return asked
	}
	if add(g.Service, "ServiceName", "service") {
		rest = append(rest, strconv.Itoa(len(columns)))
	}
	if add(g.Severity, severityOf, "severity") {
		rest = append(rest, strconv.Itoa(len(columns)))
	}
	if add(g.Time, bucket(g.Bucket), "time") {
		order = append(order, strconv.Itoa(len(columns))+" DESC")
	}
	columns = append(columns, "count() AS count")
	order = append(append(order, strconv.Itoa(len(columns))+" DESC"), rest...)
	where := g.where(s, g.From, g.To)
	return clickhouse.Request{
		SQL: "SELECT " + strings.Join(columns, ", ") + " FROM otel.otel_logs WHERE " + strings.Join(where.terms, " AND ") +
			" GROUP BY " + strings.Join(keys, ", ") + " ORDER BY " + strings.Join(order, ", ") + " LIMIT " + strconv.Itoa(g.Limit),
		Params:   where.params,
		Settings: map[string]string{"enable_positional_arguments": "1"},
	}
}
