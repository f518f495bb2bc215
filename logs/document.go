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

	"sandbox/core/document"
	"sandbox/core/fault"
)

// checks reads the members of a body. They are raw values, so that an absent
// member, null and each wrong type can be told apart. Every problem that it
// finds is Malformed.
type checks struct{ document.Problems }

// read reads a body into a struct whose fields are raw values. Errors:
// Malformed, if the body can't be read as a whole.
func (c *checks) read(doc []byte, wire any) error {
	return c.Read(doc, wire, document.MaxSize)
}

// problem returns what was wrong, or nil.
func (c *checks) problem() error { return c.Err(fault.Malformed) }

func absent(v jsontext.Value) bool { return v == nil }

func (c *checks) required(field string, v jsontext.Value) bool {
	c.Required(field, !absent(v))
	return !absent(v)
}

// text reads a string of low to high characters. ok is false if the string is
// absent or wrong.
func (c *checks) text(field string, v jsontext.Value, low, high int) (s string, ok bool) {
	if absent(v) {
		return "", false
	}
	if v.Kind() != '"' {
		c.Unread(true, field, "type", "must be a string")
		return "", false
	}
	s = unquote(v)
	n := utf8.RuneCountInString(s)
	ok = n >= low && n <= high
	c.When(!ok, field, "length", "has %d characters and must have %d to %d", n, low, high)
	return s, ok
}

// unquote returns the text of a string that was already found to be valid.
func unquote(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, v)
	return string(b)
}

// whole reads an integer. It returns fallback if the integer is absent or
// wrong.
func (c *checks) whole(field string, v jsontext.Value, fallback int) int {
	if absent(v) {
		return fallback
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if v.Kind() != '0' || err != nil || f != float64(int(f)) { // 1e2 is an integer, too
		c.Unread(true, field, "type", "must be an integer")
		return fallback
	}
	return int(f)
}

// moment reads a date-time of RFC 3339, to the nanosecond. Further digits are
// cut off.
func (c *checks) moment(field string, v jsontext.Value) (t time.Time) {
	if !c.required(field, v) {
		return t
	}
	if v.Kind() != '"' {
		c.Unread(true, field, "type", "must be a string")
		return t
	}
	s := strings.ToUpper(unquote(v)) // RFC 3339 allows lower-case t and z
	t, err := time.Parse(time.RFC3339, s)
	c.When(err != nil || !dateTime().MatchString(s), field, "format",
		"must be a date-time of RFC 3339, such as 2026-01-31T00:00:00Z")
	return t
}

// dateTime refuses the date-times that package time accepts and RFC 3339 does
// not.
var dateTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^.{10}T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`) //nolint:forbidigo // on first use
})

// name reads one of the allowed names. It returns "" if the name is absent or
// wrong.
func (c *checks) name(field string, v jsontext.Value, allowed []string) string {
	s, ok := c.text(field, v, 0, maxText)
	c.When(ok && !slices.Contains(allowed, s), field, "value", "is %.40q and must be one of %s", s, strings.Join(allowed, ", "))
	return s
}

// matching reads a string that must match a pattern. It returns "" if the
// string is absent or wrong.
func (c *checks) matching(field string, v jsontext.Value, want *regexp.Regexp) string {
	s, ok := c.text(field, v, 0, maxText)
	c.When(ok && !want.MatchString(s), field, "pattern", "must match %s", want)
	return s
}

// list reads an array of strings. It returns fallback if the array is absent.
func (c *checks) list(field string, v jsontext.Value, low, high int, fallback []string) []string {
	if absent(v) {
		return fallback
	}
	var raw []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &raw) != nil {
		c.Unread(true, field, "type", "must be a list of strings")
		return fallback
	}
	c.When(len(raw) < low || len(raw) > high, field, "length", "has %d items and must have %d to %d", len(raw), low, high)
	var list []string
	for i, item := range raw[:min(len(raw), high)] {
		at := fmt.Sprintf("%s[%d]", field, i)
		if item.Kind() != '"' {
			c.Unread(true, at, "type", "must be a string")
			continue
		}
		list = append(list, unquote(item))
	}
	return list
}
