// Package parse reads SELECT statements of ClickHouse's dialect. It knows the
// grammar and nothing else: what a statement names is looked at in package
// check. Where a setting of the engine would choose what a statement means, the
// tree says it in words: JOIN becomes ALL INNER JOIN. What the engine's own
// parser turns into functions becomes the same functions here: INTERVAL 1 DAY
// is a call of toIntervalDay.
package parse

import (
	"strings"
	"unicode/utf8"

	"sandbox/logs/sql/ast"
)

const (
	// MaxLength is the longest statement, in characters.
	MaxLength = 32768

	// maxNesting is the greatest depth of a tree. What is printed from such a
	// tree stays below the engine's own limits, which are 1000 levels of its
	// parser and of its tree.
	maxNesting = 150

	// stepsPerToken bounds the work of trying one reading after another: a
	// parser passes so many tokens at most for each token of the statement.
	stepsPerToken = 50
)

// Query reads one SELECT statement, without looking at what it names. The error
// is an *ast.Error.
func Query(source string) (*ast.Query, error) {
	if !utf8.ValidString(source) {
		return nil, ast.ErrorAt(source, 0, "the statement is not UTF-8")
	}
	if n := utf8.RuneCountInString(source); n > MaxLength {
		return nil, ast.ErrorAt(source, 0, "the statement has %d characters, %d are allowed", n, MaxLength)
	}
	return read(source, (*parser).statement)
}

// statement is the whole text: one query, and one semicolon at most.
func (p *parser) statement() *ast.Query {
	if t := p.peek(); t.kind == end {
		p.fail("the statement is empty")
	} else if !p.startsQuery() {
		p.fail("expected SELECT or WITH, found %s: %s", t, instead(t))
	}
	q := p.query()
	semicolon := p.acceptSymbol(";")
	switch t := p.peek(); {
	case t.kind == end:
	case semicolon:
		p.fail("only one statement is allowed")
	case t.is("FORMAT"), t.is("INTO"), t.is("SETTINGS"):
		p.refuseClause(t)
	default:
		p.fail("unexpected %s", t)
	}
	return q
}

// instead says what there is in the place of a statement that is no query.
func instead(t token) string {
	switch {
	case t.is("DESCRIBE"), t.is("DESC"), t.is("SHOW"), t.is("EXISTS"):
		return "the columns of the log table are at GET /v1/observability/schema"
	case t.is("EXPLAIN"):
		return "query plans are not shown; the statistics of a result say how much was read"
	default:
		return "only queries are allowed"
	}
}

// refuseClause refuses a clause that would choose how the engine answers.
func (p *parser) refuseClause(t token) {
	why := "results are always JSON"
	if t.is("SETTINGS") {
		why = "the server sets them"
	}
	p.fail("%s clauses are not allowed: %s", t, why)
}

// Type reads the whole of a string as a type. The error is an *ast.Error with
// a place in the string.
func Type(text string) (*ast.Type, error) { return readText(text, (*parser).dataType) }

// Function reads the whole of a string as a function's name, maybe with
// parameters. The error is an *ast.Error with a place in the string.
func Function(text string) (*ast.Call, error) { return readText(text, (*parser).function) }

// Columns reads the whole of a string as names with their types, as the first
// argument of the table function values has them. An element may lack its name
// or its type. A string without white space is none: the result is nil. The
// error is an *ast.Error with a place in the string.
func Columns(text string) ([]ast.TypeArg, error) {
	if !strings.ContainsFunc(text, isSpace) {
		return nil, nil
	}
	return readText(text, func(p *parser) []ast.TypeArg { return list(p, p.typeArg) })
}

// odd is what a string with a part of the grammar may not have: comments, escapes
// and further quotes. The engine is sent that string as it is, so there must be
// only one way to read it.
var odd = []string{"#", "--", "//", "/*", "$", `\`, "`", `"`, "‘", "’", "“", "”"}

// readText reads the whole of a string of the statement as one part of the
// grammar.
func readText[T any](text string, part func(*parser) T) (T, error) {
	for _, o := range odd {
		if at := strings.Index(text, o); at >= 0 {
			var none T
			return none, ast.ErrorAt(text, at, "unexpected %s", o)
		}
	}
	return read(text, part)
}

// read reads the whole of source as one part of the grammar. The error is an
// *ast.Error.
func read[T any](source string, part func(*parser) T) (T, error) {
	var none T
	tokens, err := cutAll(source)
	if err != nil {
		return none, err
	}
	p := &parser{source: source, tokens: tokens, steps: 1000 + stepsPerToken*len(tokens)}
	result := part(p)
	if p.peek().kind != end {
		p.fail("unexpected %s", p.peek())
	}
	if p.err != nil {
		return none, p.err
	}
	return result, nil
}
