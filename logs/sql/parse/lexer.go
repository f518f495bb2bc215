package parse

import (
	"strings"
	"unicode/utf8"

	"sandbox/logs/sql/ast"
)

// A lexer cuts a statement into tokens as ClickHouse does. What it does not know
// is an error.
type lexer struct {
	source string
	at     int
	last   token // decides what a dot, or digits behind a dot, mean
}

// symbols are the operators and brackets. A longer one stands before those that
// it begins with.
var symbols = []string{
	"<=>", "->", "==", "!=", "<=", "<>", "<", ">=", ">", "::", ":", "||",
	"=", "+", "-", "−", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",", ";", ".", "?", "^",
}

// cutAll returns the tokens of source, the last of which is its end.
func cutAll(source string) ([]token, *ast.Error) {
	l := lexer{source: source}
	var tokens []token
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		if t.kind == end {
			return tokens, nil
		}
	}
}

func (l *lexer) next() (token, *ast.Error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	from := l.at
	t, err := l.cut()
	if err != nil {
		return token{}, err
	}
	t.from, t.to = from, l.at
	l.last = t
	return t, nil
}

func (l *lexer) cut() (token, *ast.Error) {
	rest := l.source[l.at:]
	if rest == "" {
		return token{kind: end}, nil
	}
	switch c := rest[0]; {
	case c == '\'':
		return l.cutQuoted(text, "'")
	case c == '"' || c == '`':
		return l.cutQuoted(quoted, rest[:1])
	case strings.HasPrefix(rest, "‘"):
		return l.cutCurly(text, "‘", "’")
	case strings.HasPrefix(rest, "“"):
		return l.cutCurly(quoted, "“", "”")
	case c == '$':
		return l.cutHeredoc()
	case len(rest) > 1 && rest[1] == '\'' && strings.IndexByte("xXbB", c) >= 0:
		return l.cutDigitText()
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]) && !l.afterOperand():
		return l.cutNumber()
	case isWord(c):
		return l.cutWord(), nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(rest, s) {
			l.at += len(s)
			return token{kind: symbol, value: s}, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, l.refuse("unexpected character %q", r)
}

func (l *lexer) cutWord() token {
	from := l.at
	for l.at < len(l.source) && (isWord(l.source[l.at]) || l.source[l.at] == '$') {
		l.at++
	}
	return token{kind: word, value: l.source[from:l.at]}
}

// afterOperand reports whether a dot here is the operator, not the beginning
// of a number.
func (l *lexer) afterOperand() bool {
	switch l.last.kind {
	case word, quoted, number:
		return true
	case symbol:
		return l.last.value == ")" || l.last.value == "]"
	default:
		return false
	}
}

func (l *lexer) refuse(format string, args ...any) *ast.Error {
	return ast.ErrorAt(l.source, l.at, format, args...)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}
