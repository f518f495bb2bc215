package parse

import "sandbox/logs/sql/ast"

// A parser reads the tokens of a statement. A method is named for the part of
// the grammar that it reads, and its comment shows that part. After the first
// error every further token is the end of the statement: so loops end, and no
// method has to look for an error after each step.
type parser struct {
	source string
	tokens []token
	at     int
	depth  int
	steps  int
	err    *ast.Error
	fatal  bool // the statement is too large or too deep: no other reading is tried
}

// fail keeps the first error, at the next token.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = ast.ErrorAt(p.source, p.tokens[p.at].from, format, args...)
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
		p.fail("the statement is too complex")
		p.fatal = true
	}
	if p.err == nil && t.kind != end {
		p.at++
	}
	return t
}

// accept passes the keywords if they are next, and reports whether they were.
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

// acceptAny passes the keyword that is next, if it is one of these, and returns
// it. Otherwise it returns "".
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

// name passes an identifier of one part. An error says that what was expected.
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

// enter counts a level of nesting. The returned function must be called when the
// level is left.
func (p *parser) enter() func() {
	if p.depth++; p.depth > maxNesting {
		p.fail("the statement is nested too deeply: %d levels are allowed", maxNesting)
		p.fatal = true
	}
	return func() { p.depth-- }
}

// try reads with f and reports whether that worked. If not, it returns f's error,
// and the parser is where it was before; unless the error is fatal, which stays.
func (p *parser) try(f func()) (bool, *ast.Error) {
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
