package chdb

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// exception is a failure in ClickHouse's format:
//
//	Code: 62. DB::Exception: what is wrong. (SYNTAX_ERROR) (version 26.7.2.1)
type exception struct {
	code int
	text string
}

func (e *exception) Error() string { return e.text }

// Codes of failures that are found here and not by the engine.
const (
	codeCannotRead     = 33
	codeBadArguments   = 36
	codeSyntax         = 62
	codeUnknownSetting = 115
	codeReadonly       = 164
	codeTooManyQueries = 202
	codeSameQueryID    = 216
	codeNotImplemented = 48
	codeUnknown        = 1002
)

// fail returns a failure of our own in the format of the engine's.
func fail(code int, name, format string, args ...any) error {
	return &exception{code, fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)", code, fmt.Sprintf(format, args...), name)}
}

// newException parses the engine's text of a failure.
func newException(text string) error {
	text = single(strings.TrimSpace(text))
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "Code: "), ".")
	code, err := strconv.Atoi(number)
	if err != nil {
		return fail(codeUnknown, "UNKNOWN_EXCEPTION", "%s", text)
	}
	return &exception{code, text}
}

// single removes what libchdb puts around a complete exception: its code in
// front, and its name behind. It does so only if both codes are the same. So a
// message of throwIf that begins like an exception is not taken for one.
func single(text string) string {
	code, inner, _ := strings.Cut(text, " DB::Exception: ")
	end := strings.LastIndex(inner, "). (")
	if end < 0 || !strings.HasPrefix(inner, code+" DB::Exception: ") {
		return text
	}
	return inner[:end+1]
}

// statuses are the HTTP statuses that ClickHouse sends; 500 for all other
// codes.
var statuses = map[int]int{
	6: 400, 26: 400, 27: 400, 38: 400, 41: 400, 53: 400, 62: 400, 72: 400, 117: 400,
	25: 400, 376: 400, 441: 400, 675: 400, 676: 400, 15: 400, 44: 400, 167: 400, 168: 400, 197: 400,
	46: 404, 47: 404, 50: 404, 56: 404, 60: 404, 63: 404, 73: 404, 78: 404, 81: 404, 115: 404,
	159: 408, 160: 408, 48: 501, 202: 503, 497: 403,
}

func (e *exception) status() int {
	if status, ok := statuses[e.code]; ok {
		return status
	}
	return http.StatusInternalServerError
}
