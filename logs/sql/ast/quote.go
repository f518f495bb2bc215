package ast

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// QuoteText returns s as a string literal.
func QuoteText(s string) string { return quote(s, '\'') }

// QuoteName returns s as a quoted name.
func QuoteName(s string) string { return quote(s, '`') }

// quote puts s between the marks. Everything that has a meaning between them is
// escaped, so that every engine reads the same bytes.
func quote(s string, mark byte) string {
	var b strings.Builder
	b.WriteByte(mark)
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case s[0] == mark || s[0] == '\\':
			b.WriteByte('\\')
			b.WriteByte(s[0])
		case s[0] < ' ' || s[0] == 0x7F || r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strings.ToUpper(hex.EncodeToString([]byte{s[0]})))
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	b.WriteByte(mark)
	return b.String()
}

// IsPlain reports whether a name needs no quotes: it has ASCII letters, digits
// and _ alone, and does not begin with a digit. A plain name may be a keyword.
func IsPlain(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		digit := '0' <= c && c <= '9'
		if !letter && (!digit || i == 0) {
			return false
		}
	}
	return name != ""
}
