package ast

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Error says why a statement was refused, and where. Its text may be shown
// to the caller: beside our own words it holds only words of the statement.
type Error struct {
	Message string // lower-case, without the position
	Offset  int    // bytes before the place
	Line    int    // from 1
	Column  int    // from 1, in characters
}

// Error returns the message with the line and the column.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// ErrorAt returns an error whose place is a byte offset of the text. A message
// that quotes the text shortens it with Short.
func ErrorAt(text string, offset int, format string, args ...any) *Error {
	offset = min(offset, len(text))
	before := text[:offset]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return &Error{
		Message: fmt.Sprintf(format, args...),
		Offset:  offset,
		Line:    strings.Count(before, "\n") + 1,
		Column:  utf8.RuneCountInString(before[lineStart:]) + 1,
	}
}

// Short returns s with at most 40 characters, so that a message stays readable
// whatever the statement holds.
func Short(s string) string {
	const most = 40
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return s
}
