package parse

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// cutNumber cuts a number, or a word that begins with digits.
func (l *lexer) cutNumber() (token, *ast.Error) {
	from := l.at
	switch rest := l.source[l.at:]; {
	case l.last.isSymbol("."): // x.1.2 is the second element of the first
		l.passDigits(isDigit)
	case hasBase(rest, "0x", isHex):
		l.at += 2
		l.passFloat(isHex, "pP")
	case hasBase(rest, "0b", isBit):
		l.at += 2
		l.passDigits(isBit)
	default:
		l.passFloat(isDigit, "eE")
	}
	value := l.source[from:l.at]
	if l.at == len(l.source) || !isWord(l.source[l.at]) {
		return token{kind: number, value: strings.ReplaceAll(value, "_", "")}, nil
	}
	if strings.ContainsAny(value, ".+-") {
		return token{}, ast.ErrorAt(l.source, from, "this is not a number")
	}
	l.at = from
	return l.cutWord(), nil
}

func hasBase(s, prefix string, digit func(byte) bool) bool {
	return len(s) > 2 && strings.EqualFold(s[:2], prefix) && digit(s[2])
}

// passFloat passes digits, a fraction and an exponent.
func (l *lexer) passFloat(digit func(byte) bool, exponents string) {
	l.passDigits(digit)
	if l.at < len(l.source) && l.source[l.at] == '.' {
		l.at++
		l.passDigits(digit)
	}
	if l.at >= len(l.source) || strings.IndexByte(exponents, l.source[l.at]) < 0 {
		return
	}
	mark := l.at
	l.at++
	if l.at < len(l.source) && (l.source[l.at] == '+' || l.source[l.at] == '-') {
		l.at++
	}
	if first := l.at; !l.passDigits(isDigit) || l.at == first {
		l.at = mark
	}
}

// passDigits passes digits with single underscores between them, and reports
// whether there were any.
func (l *lexer) passDigits(digit func(byte) bool) bool {
	from := l.at
	for ; l.at < len(l.source); l.at++ {
		c := l.source[l.at]
		between := c == '_' && l.at > from && digit(l.source[l.at-1]) && l.at+1 < len(l.source) && digit(l.source[l.at+1])
		if !digit(c) && !between {
			break
		}
	}
	return l.at > from
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func isBit(c byte) bool { return c == '0' || c == '1' }
