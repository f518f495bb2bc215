package parse

import "sandbox/logs/sql/ast"

// bracket is a query, a tuple, or brackets around an operand.
func (p *parser) bracket() ast.Expr {
	var fault *ast.Error
	if p.startsQuery() {
		var s *ast.Subquery
		ok, err := p.try(func() { s = &ast.Subquery{Query: p.bracketedQuery()} })
		if ok {
			return s
		}
		fault = err
	}
	x := p.tuple()
	if p.err != nil && fault != nil && fault.Offset >= p.err.Offset {
		p.err = fault
	}
	return x
}

func (p *parser) tuple() ast.Expr {
	from := p.at
	p.expectSymbol("(")
	t := &ast.Tuple{}
	comma := false
	for !p.peek().isSymbol(")") {
		t.Items = append(t.Items, p.item(false))
		comma = p.acceptSymbol(",")
		if !comma {
			break
		}
	}
	p.expectSymbol(")")
	if len(t.Items) != 1 || comma {
		return p.castCollection(t, from)
	}
	switch x := t.Items[0].(type) {
	case *ast.Literal, *ast.Tuple, *ast.Array, *ast.Paren:
		return p.castCollection(&ast.Paren{X: x}, from)
	case *ast.Name:
		if p.peek().isSymbol(".") || p.peek().isSymbol("->") {
			return p.bracketedName(x)
		}
		return x
	default:
		return x
	}
}

// bracketedName is what follows (x), which is not the same as x before a dot: a
// member of x, (x).y, is not the column x.y. Before an arrow it is.
func (p *parser) bracketedName(x *ast.Name) ast.Expr {
	if p.peek().isSymbol("->") {
		return x
	}
	p.expectSymbol(".")
	return p.member(x)
}

func (p *parser) array() ast.Expr {
	from := p.at
	p.expectSymbol("[")
	a := &ast.Array{}
	for !p.peek().isSymbol("]") {
		a.Items = append(a.Items, p.item(false))
		if !p.acceptSymbol(",") {
			break
		}
	}
	p.expectSymbol("]")
	return p.castCollection(a, from)
}

// castCollection is x::T, where x is a number, or a tuple or array of numbers and
// strings that began at the token from. The text of x is cast, as the engine does
// it. Anything else is returned as it is.
func (p *parser) castCollection(x ast.Expr, from int) ast.Expr {
	if p.err != nil || !p.peek().isSymbol("::") || !ast.IsConstant(x) || !p.isPlainCollection(p.tokens[from:p.at]) {
		return x
	}
	return p.castText(x, p.source[p.tokens[from].from:p.tokens[p.at-1].to])
}

// isPlainCollection reports whether the engine casts the text of these tokens, and
// not their value: they have no words, no strings in other than straight quotes,
// and no comma at the end.
func (p *parser) isPlainCollection(tokens []token) bool {
	for i, t := range tokens {
		switch {
		case t.kind == word, t.isSymbol("+"):
			return false
		case t.kind == text && p.source[t.from] != '\'':
			return false
		case t.isSymbol(",") && (tokens[i+1].isSymbol(")") || tokens[i+1].isSymbol("]")):
			return false
		}
	}
	return true
}
