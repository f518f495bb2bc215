package logs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// read reads a body into a wire struct, whose members are raw values: absent,
// null and each wrong type are told apart by the checks. Errors: Malformed, with fields.
func read(doc []byte, wire any) error {
	return options.Strict(doc, wire)
}

// checks collects what is wrong with a document, so that its sender sees all
// of it at once.
type checks struct{ fields []fault.Field }

func (c *checks) when(bad bool, field, code, format string, args ...any) {
	if bad {
		c.fields = append(c.fields, fault.Field{Field: field, Code: code, Message: fmt.Sprintf(format, args...)})
	}
}

// problem returns what was wrong, or nil.
func (c *checks) problem() error {
	if len(c.fields) == 0 {
		return nil
	}
	return problemWith(fault.Malformed, c.fields...)
}

func problemWith(kind fault.Kind, fields ...fault.Field) error {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Field + " " + f.Message
	}
	return &fault.Error{Kind: kind, Message: strings.Join(parts, "; "), Fields: fields}
}

func absent(v jsontext.Value) bool { return v == nil }

func (c *checks) required(field string, v jsontext.Value) bool {
	c.when(absent(v), field, "required", "is missing")
	return !absent(v)
}

// text reads a string of low to high characters; "" if it is absent or wrong.
func (c *checks) text(field string, v jsontext.Value, low, high int) string {
	if absent(v) {
		return ""
	}
	if v.Kind() != '"' {
		c.when(true, field, "type", "must be a string")
		return ""
	}
	s := unquote(v)
	n := utf8.RuneCountInString(s)
	c.when(n < low || n > high, field, "length", "has %d characters and must have %d to %d", n, low, high)
	return s
}

// unquote returns the text of a string that was found right when it was read.
func unquote(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, v)
	return string(b)
}

// whole reads an integer; fallback if it is absent or wrong.
func (c *checks) whole(field string, v jsontext.Value, fallback int) int {
	if absent(v) {
		return fallback
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if v.Kind() != '0' || err != nil || f != float64(int(f)) { // 1e2 is an integer, too
		c.when(true, field, "type", "must be an integer")
		return fallback
	}
	return int(f)
}

// moment reads a date-time of RFC 3339.
func (c *checks) moment(field string, v jsontext.Value) (t time.Time) {
	if !c.required(field, v) {
		return t
	}
	if v.Kind() != '"' {
		c.when(true, field, "type", "must be a string")
		return t
	}
	s := strings.ToUpper(unquote(v)) // t and z are allowed
	t, err := time.Parse(time.RFC3339, s)
	c.when(err != nil || !dateTime().MatchString(s), field, "format",
		"must be a date-time of RFC 3339, such as 2026-01-31T00:00:00Z, with at most nine digits behind the second")
	return t
}

// dateTime refuses what package time takes and RFC 3339 does not, and digits
// that the table does not have.
var dateTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^.{10}T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`) //nolint:forbidigo // on first use
})

// name reads one of some names; "" only if it is absent or wrong.
func (c *checks) name(field string, v jsontext.Value, allowed []string) string {
	if absent(v) {
		return ""
	}
	before := len(c.fields)
	s := c.text(field, v, 0, maxText)
	if len(c.fields) == before && !slices.Contains(allowed, s) {
		c.when(true, field, "value", "is %.40q and must be one of %s", s, strings.Join(allowed, ", "))
	}
	return s
}

// matching reads a string of a pattern; "" only if it is absent or wrong.
func (c *checks) matching(field string, v jsontext.Value, want *regexp.Regexp) string {
	if absent(v) {
		return ""
	}
	before := len(c.fields)
	s := c.text(field, v, 0, maxText)
	if len(c.fields) == before {
		c.when(!want.MatchString(s), field, "pattern", "must match %s", want)
	}
	return s
}

// list reads an array of strings; fallback if it is absent.
func (c *checks) list(field string, v jsontext.Value, low, high int, fallback []string) []string {
	if absent(v) {
		return fallback
	}
	var raw []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &raw) != nil {
		c.when(true, field, "type", "must be a list of strings")
		return fallback
	}
	c.when(len(raw) < low || len(raw) > high, field, "length", "has %d items and must have %d to %d", len(raw), low, high)
	var list []string
	for i, item := range raw[:min(len(raw), high)] {
		at := fmt.Sprintf("%s[%d]", field, i)
		if item.Kind() != '"' {
			c.when(true, at, "type", "must be a string")
			continue
		}
		list = append(list, unquote(item))
	}
	return list
}
