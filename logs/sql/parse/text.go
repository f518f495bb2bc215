package parse

import (
	"encoding/hex"
	"strings"

	"sandbox/logs/sql/ast"
)

// cutQuoted cuts a string or name in straight quotes. Two quotes are one; a
// backslash escapes, in names too.
func (l *lexer) cutQuoted(k kind, quote string) (token, *ast.Error) {
	var b strings.Builder
	for at := l.at + 1; at < len(l.source); {
		rest := l.source[at:]
		switch {
		case strings.HasPrefix(rest, quote+quote):
			b.WriteString(quote)
			at += 2
		case rest[0] == quote[0]:
			l.at = at + 1
			return token{kind: k, value: b.String()}, nil
		case rest[0] == '\\':
			value, size := unescape(rest)
			if size == 0 {
				return token{}, ast.ErrorAt(l.source, at, "this escape is not complete")
			}
			b.WriteString(value)
			at += size
		default:
			b.WriteByte(rest[0])
			at++
		}
	}
	return token{}, l.refuse("this quote is not closed")
}

var escapes = map[byte]string{
	'a': "\a", 'b': "\b", 'e': "\x1b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '0': "\x00",
	'\\': `\`, '\'': "'", '"': `"`, '`': "`", '/': "/", 'N': "",
}

// unescape returns the meaning of the escape that s begins with, and its length,
// which is 0 if the escape is not complete.
// An unknown escape means itself with its backslash, so that patterns of LIKE
// and regular expressions need no doubling.
func unescape(s string) (value string, size int) {
	if len(s) < 2 {
		return "", 0
	}
	if s[1] == 'x' {
		if len(s) < 4 {
			return "", 0
		}
		b, err := hex.DecodeString(s[2:4])
		if err != nil {
			return "", 0
		}
		return string(b), 4
	}
	if value, known := escapes[s[1]]; known {
		return value, 2
	}
	if s[1] < ' ' {
		return s[1:2], 2
	}
	return s[:2], 2
}

// cutCurly cuts a string or name in typographic quotes, which have no escapes.
func (l *lexer) cutCurly(k kind, open, closing string) (token, *ast.Error) {
	from := l.at + len(open)
	n := strings.Index(l.source[from:], closing)
	if n < 0 {
		return token{}, l.refuse("this quote is not closed")
	}
	l.at = from + n + len(closing)
	return token{kind: k, value: l.source[from : from+n]}, nil
}

// cutHeredoc cuts $tag$...$tag$, or a word that begins with a dollar.
func (l *lexer) cutHeredoc() (token, *ast.Error) {
	rest := l.source[l.at:]
	if n := strings.IndexByte(rest[1:], '$'); n >= 0 {
		tag := rest[:n+2]
		if size := strings.Index(rest[len(tag):], tag); size >= 0 {
			l.at += size + 2*len(tag)
			return token{kind: text, value: rest[len(tag) : len(tag)+size]}, nil
		}
	}
	if len(rest) > 1 && isWord(rest[1]) {
		return l.cutWord(), nil
	}
	return token{}, l.refuse("unexpected character '$'")
}

// cutDigitText cuts x'4142' and b'01000001'. Digits fill bytes from the right.
func (l *lexer) cutDigitText() (token, *ast.Error) {
	rest := l.source[l.at:]
	n := strings.IndexByte(rest[2:], '\'')
	if n < 0 {
		return token{}, l.refuse("this quote is not closed")
	}
	value, ok := digitText(rest[0], rest[2:2+n])
	if !ok {
		return token{}, l.refuse("these are not hexadecimal or binary digits")
	}
	l.at += n + 3
	return token{kind: text, value: value}, nil
}

func digitText(form byte, digits string) (string, bool) {
	if form == 'x' || form == 'X' {
		if len(digits)%2 == 1 {
			digits = "0" + digits
		}
		b, err := hex.DecodeString(digits)
		return string(b), err == nil
	}
	digits = strings.Repeat("0", -len(digits)&7) + digits
	b := make([]byte, len(digits)/8)
	for i := range digits {
		if digits[i] != '0' && digits[i] != '1' {
			return "", false
		}
		b[i/8] = b[i/8]<<1 | (digits[i] - '0')
	}
	return string(b), true
}
