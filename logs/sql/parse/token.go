package parse

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// A kind tells tokens apart.
type kind uint8

const (
	end    kind = iota
	word        // a bare word: keyword, name or function
	quoted      // a quoted identifier; value is what it means
	text        // a string of any form; value is what it means
	number      // value is the number without underscores
	symbol      // value is the operator or bracket
)

// A token is a piece of the statement. Its bytes are source[from:to].
type token struct {
	kind     kind
	value    string
	from, to int
}

// is reports whether the token is this keyword; quoted names never are.
func (t token) is(keyword string) bool {
	return t.kind == word && strings.EqualFold(t.value, keyword)
}

func (t token) isSymbol(s string) bool { return t.kind == symbol && t.value == s }

// String names the token in a message.
func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case quoted:
		return ast.QuoteName(ast.Short(t.value))
	case text:
		return ast.QuoteText(ast.Short(t.value))
	default:
		return ast.Short(t.value)
	}
}
