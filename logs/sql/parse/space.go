package parse

import (
	"strings"
	"unicode/utf8"

	"sandbox/logs/sql/ast"
)

// skip passes white space and comments.
func (l *lexer) skip() *ast.Error {
	for {
		rest := l.source[l.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case isSpace(r):
			l.at += size
		case startsLineComment(rest):
			l.skipLine()
		case strings.HasPrefix(rest, "/*"):
			if err := l.skipComment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// isSpace reports whether the engine takes a character for white space. The list
// was found by trying every character of Unicode's basic plane.
func isSpace(r rune) bool {
	switch {
	case '\t' <= r && r <= '\r', r == ' ', r == 0x85, r == 0xA0, r == 0x180E,
		0x2000 <= r && r <= 0x200D, r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F,
		r == 0x2060, r == 0x3000, r == 0xFEFF:
		return true
	default:
		return false
	}
}

func startsLineComment(s string) bool {
	for _, start := range []string{"--", "//", "# ", "#!"} {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return false
}

// skipLine passes a comment up to its line feed. A carriage return does not end
// it.
func (l *lexer) skipLine() {
	if n := strings.IndexByte(l.source[l.at:], '\n'); n >= 0 {
		l.at += n
		return
	}
	l.at = len(l.source)
}

// skipComment passes a comment in /* */ and those nested in it.
func (l *lexer) skipComment() *ast.Error {
	depth, at := 0, l.at
	for at < len(l.source) {
		switch rest := l.source[at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			at += 2
			if depth == 0 {
				l.at = at
				return nil
			}
		default:
			at++
		}
	}
	return l.refuse("this comment is not closed")
}
