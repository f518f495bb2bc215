// Package fault holds every class of failure, once, with the number it has in
// C, the status it has over HTTP and the exit code it has on the command line.
//
// A failure is classified where its cause is understood, with [New] or [Wrap].
// In between, callers add what they were doing with fmt.Errorf("...: %w").
// Boundaries (C, HTTP, command line) translate with [Of]; nothing else looks
// at a Kind but to decide what to do next, with [Is].
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind is one row of the table of failures.
type Kind uint8

// Row is what a Kind means at each boundary.
type Row struct {
	Code  string // in JSON, never changed
	C     int    // SandboxErrorCode
	HTTP  int    // status
	Exit  int    // exit code of the command line
	Class string // one line for the documentation
	Title string // of a problem object of the log queries; "" if they never answer with it
}

// Error is a classified failure.
type Error struct {
	Kind    Kind
	Message string  // lower case, names the thing and what to do; no secrets
	Fields  []Field // what is wrong with which member, for documents

	Prerequisite string        // what must be done before it can work, or ""
	RetryAfter   time.Duration // when another try may help; 0 if nobody knows

	Err error // the cause, or nil
	// Hidden is a cause that no client may read, such as the answer of a server
	// behind this one: Error does not tell it, but our own log does. It counts
	// where Err is nil.
	Hidden error
}

// Field names one member of a document and what is wrong with it.
type Field struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// New makes a failure of kind k. It never returns nil.
func New(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Wrap classifies err as k and says what was being done. Wrap of nil is nil.
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

// Unwrap returns the cause, also a hidden one.
func (e *Error) Unwrap() error {
	if e.Err == nil {
		return e.Hidden
	}
	return e.Err
}

// Of returns err as a classified failure whose Message is err's whole text;
// the only cause that it keeps is a hidden one.
// What nobody classified is Canceled or Timeout where a context ended it, and
// Internal otherwise. Of nil is nil.
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
	}
	return &Error{Kind: kind, Message: err.Error()}
}

// Classified tells whether err has a kind already, which whoever passes it on
// leaves as it is. Classified of nil is false.
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

// Row returns the kind's row of the table; an unknown kind has Internal's.
func (k Kind) Row() Row {
	if int(k) >= len(table) {
		return table[Internal]
	}
	return table[k]
}

// String returns the code.
func (k Kind) String() string { return k.Row().Code }

// MarshalText writes the code.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a code; one that this build does not know is Internal.
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
