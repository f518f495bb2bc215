// Package fault holds the one table of all kinds of failure, with the number
// that each has in C, its status over HTTP and its exit code on the command
// line.
//
// A failure is classified where its cause is understood, with [New] or [Wrap].
// The callers in between add what they were doing with fmt.Errorf("...: %w").
// Boundaries (C, HTTP, the command line) translate the failure with [Of]. All
// other code looks at a Kind only to decide what to do next, with [Is].
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind is a kind of failure: one row of the table.
type Kind uint8

// Row says what a Kind means at each boundary.
type Row struct {
	Code  string // in JSON; it never changes
	C     int    // SandboxErrorCode
	HTTP  int    // status
	Exit  int    // exit code of the command line
	Class string // one line for the documentation
	Title string // title of a problem object of the log queries; "" if they never answer with this kind
}

// Error is a classified failure.
type Error struct {
	Kind    Kind
	Message string  // in lower case; names the thing and what to do; holds no secrets
	Fields  []Field // what is wrong with which member of a document

	Prerequisite string        // what must be done before it can work, or ""
	RetryAfter   time.Duration // how long to wait before another try; 0 if unknown

	Err error // the cause, or nil
	// Hidden is a cause that no client may read, such as the answer of a server
	// behind this one. The method Error leaves it out, but our own log shows
	// it. It is used only where Err is nil.
	Hidden error
}

// Field names one member of a document and what is wrong with it.
type Field struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// New returns a failure of kind k. It never returns nil.
func New(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns a failure of kind k with err as its cause; the format says what
// was being done. For a nil err it returns nil.
func Wrap(k Kind, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...), Err: err}
}

// Error returns the message and, behind a colon, the cause.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Message
	case e.Message == "":
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause, which may be the hidden one.
func (e *Error) Unwrap() error {
	if e.Err == nil {
		return e.Hidden
	}
	return e.Err
}

// Of returns err as a classified failure, whose Message is the whole text of
// err. The result keeps no cause but a hidden one. An err that nobody has
// classified becomes Canceled or Timeout if a context caused it, and Internal
// otherwise. For nil, Of returns nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		f := *e
		f.Message, f.Err, f.Hidden = err.Error(), nil, e.hidden()
		return &f
	}
	kind := Internal
	switch {
	case errors.Is(err, context.Canceled):
		kind = Canceled
	case errors.Is(err, context.DeadlineExceeded):
		kind = Timeout
	case Short(err):
		kind = ResourceExhausted
	}
	return &Error{Kind: kind, Message: err.Error()}
}

// Classified tells whether err has a kind already. Code that passes such an
// error on must not classify it again. For nil, it returns false.
func Classified(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

// hidden returns the first hidden cause of e and its causes, or nil.
func (e *Error) hidden() error {
	if e.Hidden != nil {
		return e.Hidden
	}
	var cause *Error
	if errors.As(e.Err, &cause) {
		return cause.hidden()
	}
	return nil
}

// Is tells whether err is a failure of kind k.
func Is(err error, k Kind) bool { return err != nil && Of(err).Kind == k }

// Row returns the kind's row of the table, and that of Internal for an unknown
// kind.
func (k Kind) Row() Row {
	if int(k) >= len(table) {
		return table[Internal]
	}
	return table[k]
}

// String returns the code.
func (k Kind) String() string { return k.Row().Code }

// MarshalText returns the code.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a code. A code that this build does not know becomes
// Internal.
func (k *Kind) UnmarshalText(text []byte) error {
	*k = Internal
	for i, row := range table {
		if row.Code == string(text) {
			*k = Kind(i)
		}
	}
	return nil
}

// Table returns all rows, in the order of the contract.
func Table() []Row { return append([]Row(nil), table[:]...) }
