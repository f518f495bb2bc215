package logs

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"sandbox/core/fault"
	"sandbox/logs/sql"
)

// A statement is a caller's statement, rewritten by package sql, with the
// values of its placeholders.
type statement struct {
	sql              string
	params, literals map[string]string
}

type statementDocument struct {
	SQL        jsontext.Value `json:"sql"`
	Parameters jsontext.Value `json:"parameters"`
}

// Limits of a statement (spec, "Limits").
const (
	MaxSQL       = 32768 // characters
	maxParams    = 100
	maxParamText = 4096 // characters
)

var paramName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`) //nolint:forbidigo // on first use
})

// decodeStatement reads the body of a query and checks whether its statement is
// allowed. Each of tables is a name that means the log table in it. Errors:
// Malformed, TooLarge and SQLRejected, with fields.
func decodeStatement(doc []byte, tables []sql.TableName) (statement, error) {
	var d statementDocument
	var c checks
	if err := c.read(doc, &d); err != nil {
		return statement{}, err
	}
	c.required("sql", d.SQL)
	text := c.sql(d.SQL)
	params := c.params(d.Parameters)
	if err := c.problem(); err != nil {
		return statement{}, err
	}
	if n := utf8.RuneCountInString(text); n > MaxSQL {
		return statement{}, &fault.Error{Kind: fault.TooLarge, Message: "sql is longer than the 32768 characters allowed",
			Fields: []fault.Field{{Field: "sql", Code: "length", Message: "is longer than the 32768 characters allowed"}}}
	}
	ours, err := sql.Read(text, tables...)
	if err != nil {
		return statement{}, rejected(err)
	}
	s := statement{ours.SQL, map[string]string{}, map[string]string{}}
	for _, p := range ours.Params {
		value, given := params[p.Name]
		switch {
		case !given: // the engine's error names it
		case composite(p.Type):
			s.literals[p.Name] = value
		default:
			s.params[p.Name] = value
		}
	}
	return s, nil
}

// composite reports whether the engine reads a type's values in the syntax of
// literals in a statement.
func composite(kind string) bool {
	outer, _, _ := strings.Cut(kind, "(")
	return slices.Contains([]string{"Array", "Tuple", "Map", "Nested"}, outer)
}

func rejected(err error) error {
	p := &fault.Error{Kind: fault.SQLRejected, Message: err.Error()}
	if e := (*sql.Error)(nil); errors.As(err, &e) {
		p.Fields = []fault.Field{{Field: "sql", Code: "rejected", Message: e.Error()}}
	}
	return p
}

// sql reads the text of a statement. Its length is checked in decodeStatement,
// because a statement that is too long is another kind of failure.
func (c *checks) sql(v jsontext.Value) string {
	if absent(v) {
		return ""
	}
	c.When(v.Kind() != '"', "sql", "type", "must be a string")
	if v.Kind() != '"' {
		return ""
	}
	text := unquote(v)
	c.When(text == "", "sql", "length", "must not be empty")
	return text
}

// params reads the values of placeholders, as the text that the engine expects.
func (c *checks) params(v jsontext.Value) map[string]string {
	if absent(v) {
		return nil
	}
	var raw map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &raw) != nil {
		c.Unread(true, "parameters", "type", "must be an object")
		return nil
	}
	c.When(len(raw) > maxParams, "parameters", "too_many", "has %d members and may have %d", len(raw), maxParams)
	params := make(map[string]string, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		at := "parameters." + brief(name)
		c.When(!paramName().MatchString(name), at, "pattern", "must have a name that matches %s", paramName())
		switch value := raw[name]; value.Kind() {
		case '"':
			params[name], _ = c.text(at, value, 0, maxParamText)
		case '0', 't', 'f':
			params[name] = string(value)
		default:
			c.Unread(true, at, "type", "must be a string, a number or a boolean")
		}
	}
	return params
}

// brief shortens a message that quotes a client's text.
func brief(s string) string {
	const most = 100
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "..."
}
