package sql

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error says why a statement was refused, and where. Its text may be shown to
// the caller: it holds nothing but words of the statement.
type Error struct {
	Message string // lower-case, without the position
	Offset  int    // bytes before the place
	Line    int    // from 1
	Column  int    // from 1, in characters
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s at line %d, column %d", e.Message, e.Line, e.Column)
}

// errorAt places a message at a byte offset of the text.
func errorAt(text string, offset int, format string, args ...any) *Error {
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
