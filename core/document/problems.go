// Package document reads the JSON documents of callers, strictly, and collects
// all that is wrong with one, so that its sender learns of it at once.
package document

import (
	"fmt"
	"slices"
	"strings"

	"sandbox/core/fault"
)

// maxProblems bounds how much is told of one document.
const maxProblems = 100

// Problems is what is wrong with one document: first what [Problems.Read] found,
// then what its reader found. The zero value is ready for use.
type Problems struct {
	// Prefix begins the message of every failure.
	Prefix string

	fields []fault.Field
	// unread are the members that are missing or of the wrong type: their values
	// are not known, so nothing else is said of them.
	unread []string
}

// When notes that the value of a member is not allowed, if bad. code is for
// programs. The message goes on after the name of the member.
func (p *Problems) When(bad bool, field, code, format string, args ...any) {
	if bad && !p.isUnread(field) {
		p.add(field, code, fmt.Sprintf(format, args...))
	}
}

// Unread notes that a member is missing, unknown or of the wrong type, if bad.
// The failure is then Malformed.
func (p *Problems) Unread(bad bool, field, code, format string, args ...any) {
	if bad && !p.isUnread(field) {
		p.add(field, code, fmt.Sprintf(format, args...))
		p.unread = append(p.unread, field)
	}
}

// Required notes that a member is missing unless it is present.
func (p *Problems) Required(field string, present bool) {
	p.Unread(!present, field, "required", "is missing")
}

// Within notes that n is not from low to high.
func (p *Problems) Within(field string, n, low, high int) {
	p.When(n < low, field, "range", "is %d and must be at least %d", n, low)
	p.When(n > high, field, "range", "is %d and must be at most %d", n, high)
}

// OneOf notes that s is none of the allowed values.
func (p *Problems) OneOf(field, s string, allowed ...string) {
	p.When(!slices.Contains(allowed, s), field, "value", "is %.100q and must be one of %s", s, strings.Join(allowed, ", "))
}

// Add notes the fields of a failure of another reader, and returns nil. A failure
// that has no fields is returned as it is.
func (p *Problems) Add(err error) error {
	f := fault.Of(err)
	if f == nil || f.Fields == nil {
		return err
	}
	for _, field := range f.Fields {
		p.When(true, field.Field, field.Code, "%s", field.Message)
	}
	return nil
}

func (p *Problems) add(field, code, message string) {
	if len(p.fields) < maxProblems {
		p.fields = append(p.fields, fault.Field{Field: field, Code: code, Message: message})
	}
}

// Has tells whether something is wrong with a member, or in it.
func (p *Problems) Has(field string) bool {
	return p.isUnread(field) || slices.ContainsFunc(p.fields, func(f fault.Field) bool { return f.Field == field || inside(f.Field, field) })
}

// isUnread tells whether a member, one inside it, or one that it lies in could
// not be read.
func (p *Problems) isUnread(field string) bool {
	return slices.ContainsFunc(p.unread, func(u string) bool { return u == field || inside(u, field) || inside(field, u) })
}

// inside tells whether the member inner lies in the member outer.
func inside(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// Err returns all problems as one failure, or nil if there are none. It is
// Malformed if a member could not be read, and of the kind values otherwise.
func (p *Problems) Err(values fault.Kind) error {
	if len(p.fields) == 0 {
		return nil
	}
	if p.unread != nil {
		values = fault.Malformed
	}
	parts := make([]string, len(p.fields))
	for i, f := range p.fields {
		parts[i] = f.Field + " " + f.Message
	}
	return &fault.Error{Kind: values, Message: p.Prefix + strings.Join(parts, "; "), Fields: p.fields}
}

// Invalid returns the failure of one value that is not allowed: InvalidArgument.
func Invalid(field, code, message string) error {
	var p Problems
	p.When(true, field, code, "%s", message)
	return p.Err(fault.InvalidArgument)
}

// Malformed returns the failure of one member that is missing, unknown or can't
// be read.
func Malformed(field, code, message string) error {
	var p Problems
	p.Unread(true, field, code, "%s", message)
	return p.Err(fault.Malformed)
}
