package sql

import "unicode/utf8"

const (
	// MaxLength is the longest statement, in characters.
	MaxLength = 32768

	// maxNesting bounds the depth of the tree: the engine's own limits (1000
	// levels of its parser and of its tree) lie above what this gives.
	maxNesting = 150

	// stepsPerToken bounds the work of taking back what was tried: no
	// statement costs more than so many looks at each of its tokens.
	stepsPerToken = 50
)

// A parser goes over the tokens of a statement. Its first error makes every
// further token the end, so that callers need not look at it at each step.
type parser struct {
	source string
	tokens []token
	at     int
	depth  int
	steps  int
	err    *Error
	fatal  bool // the error is one of size, which no other reading helps
}

// Parse reads one SELECT statement, without looking at what it names. The
// error is an *Error.
func Parse(source string) (*Query, error) {
	if !utf8.ValidString(source) {
		return nil, errorAt(source, 0, "the statement is not UTF-8")
	}
	if n := utf8.RuneCountInString(source); n > MaxLength {
		return nil, errorAt(source, 0, "the statement has %d characters, %d are allowed", n, MaxLength)
	}
	tokens, err := cutAll(source)
	if err != nil {
		return nil, err
	}
	p := &parser{source: source, tokens: tokens, steps: 1000 + stepsPerToken*len(tokens)}
	q := p.statement()
	if p.err != nil {
		return nil, p.err
	}
	q.text = source
	return q, nil
}

func cutAll(source string) ([]token, *Error) {
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

// statement is the whole text: a query, one semicolon at most, nothing more.
func (p *parser) statement() *Query {
	if t := p.peek(); t.kind == end {
		p.fail("the statement is empty")
	} else if !p.startsQuery() {
		p.fail("expected SELECT or WITH, found %s: only queries are answered", t)
	}
	q := p.query()
	semicolon := p.acceptSymbol(";")
	switch t := p.peek(); {
	case t.kind == end:
	case semicolon:
		p.fail("only one statement is allowed")
	case t.is("FORMAT"), t.is("INTO"), t.is("SETTINGS"):
		p.fail("%s clauses are not allowed", t)
	default:
		p.fail("unexpected %s", t)
	}
	return q
}

// fail keeps the first error, at the next token.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = errorAt(p.source, p.tokens[p.at].from, format, args...)
	}
}

func (p *parser) peek() token { return p.ahead(0) }

// ahead returns the n-th token after the next one.
func (p *parser) ahead(n int) token {
	last := len(p.tokens) - 1
	if p.err != nil {
		return token{kind: end, from: p.tokens[p.at].from}
	}
	return p.tokens[min(p.at+n, last)]
}

func (p *parser) next() token {
	t := p.peek()
	if p.steps--; p.steps < 0 {
		p.fail("the statement is too involved")
		p.fatal = true
	}
	if p.err == nil && t.kind != end {
		p.at++
	}
	return t
}

// accept passes the keywords if they are next.
func (p *parser) accept(keywords ...string) bool {
	if !p.follows(keywords...) {
		return false
	}
	for range keywords {
		p.next()
	}
	return true
}

// follows reports whether the keywords are next.
func (p *parser) follows(keywords ...string) bool {
	for i, k := range keywords {
		if !p.ahead(i).is(k) {
			return false
		}
	}
	return true
}

// acceptAny passes one of the keywords and gives it, or gives "".
func (p *parser) acceptAny(keywords ...string) string {
	for _, k := range keywords {
		if p.accept(k) {
			return k
		}
	}
	return ""
}

func (p *parser) acceptSymbol(s string) bool {
	if !p.peek().isSymbol(s) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(keywords ...string) {
	for _, k := range keywords {
		if !p.accept(k) {
			p.fail("expected %s, found %s", k, p.peek())
		}
	}
}

func (p *parser) expectSymbol(s string) {
	if !p.acceptSymbol(s) {
		p.fail("expected %s, found %s", s, p.peek())
	}
}

// name passes an identifier of one part.
func (p *parser) name(what string) string {
	t := p.peek()
	if t.kind != word && t.kind != quoted || t.value == "" {
		p.fail("expected %s, found %s", what, t)
		return ""
	}
	return p.next().value
}

// names passes identifiers with commas between them.
func (p *parser) names(what string) []string {
	return list(p, func() string { return p.name(what) })
}

// list passes one element or more, with commas between them.
func list[T any](p *parser, element func() T) []T {
	all := []T{element()}
	for p.acceptSymbol(",") {
		all = append(all, element())
	}
	return all
}

// enter counts a level of nesting; the function it gives leaves it.
func (p *parser) enter() func() {
	if p.depth++; p.depth > maxNesting {
		p.fail("the statement is nested too deeply: %d levels are allowed", maxNesting)
		p.fatal = true
	}
	return func() { p.depth-- }
}

// try parses with f. If that fails the parser is as before, f's error is
// given, and the result is false.
func (p *parser) try(f func()) (bool, *Error) {
	if p.err != nil {
		return false, p.err
	}
	at, depth := p.at, p.depth
	f()
	if p.err == nil {
		return true, nil
	}
	err := p.err
	if !p.fatal {
		p.at, p.depth, p.err = at, depth, nil
	}
	return false, err
}
