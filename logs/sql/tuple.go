package sql

import "slices"

// bracket is a query, a tuple, or brackets around an operand.
func (p *parser) bracket() Expr {
	var fault *Error
	if p.startsQuery() {
		var s *Subquery
		ok, err := p.try(func() { s = &Subquery{Query: p.bracketedQuery()} })
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

func (p *parser) tuple() Expr {
	from := p.at
	p.expectSymbol("(")
	t := &Tuple{}
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
	case *Literal, *Tuple, *Array, *Paren:
		return p.castCollection(&Paren{X: x}, from)
	case *Name:
		if p.peek().isSymbol(".") || p.peek().isSymbol("->") {
			return p.bracketedName(x)
		}
		return x
	default:
		return x
	}
}

// bracketedName keeps (a).b apart from a.b, and (x) -> y for x -> y.
func (p *parser) bracketedName(x *Name) Expr {
	if p.peek().isSymbol("->") {
		return x
	}
	p.expectSymbol(".")
	return p.member(x)
}

func (p *parser) array() Expr {
	from := p.at
	p.expectSymbol("[")
	a := &Array{}
	for !p.peek().isSymbol("]") {
		a.Items = append(a.Items, p.item(false))
		if !p.acceptSymbol(",") {
			break
		}
	}
	p.expectSymbol("]")
	return p.castCollection(a, from)
}

// castCollection casts the very text of a number, or of a tuple or array of
// numbers and strings.
func (p *parser) castCollection(x Expr, from int) Expr {
	if p.err != nil || !p.peek().isSymbol("::") || !isConstant(x) || !p.isPlainCollection(p.tokens[from:p.at]) {
		return x
	}
	return p.castText(x, p.source[p.tokens[from].from:p.tokens[p.at-1].to])
}

// isPlainCollection reports what the engine takes by its text: no words, no
// strings in other than straight quotes, no comma at the end.
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

// isConstant reports literals, and tuples and arrays of them.
func isConstant(x Expr) bool {
	switch x := x.(type) {
	case *Literal:
		return true
	case *Tuple:
		return !slices.ContainsFunc(x.Items, isVariable)
	case *Array:
		return !slices.ContainsFunc(x.Items, isVariable)
	case *Paren:
		return isConstant(x.X)
	default:
		return false
	}
}

func isVariable(x Expr) bool { return !isConstant(x) }
