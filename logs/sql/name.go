package sql

// named is a column, a qualified star, or a function.
func (p *parser) named() Expr {
	n := &Name{Pos: p.peek().from, Parts: []NamePart{{Name: p.name("an expression")}}}
	if p.peek().isSymbol("(") {
		return p.call(n.Pos, n.Parts[0].Name)
	}
	for p.peek().isSymbol(".") && p.err == nil {
		after := p.ahead(1)
		switch {
		case after.isSymbol("*"):
			p.expectSymbol(".")
			p.expectSymbol("*")
			return p.transformed(&Star{Of: plain(n)})
		case after.is("COLUMNS") && p.ahead(2).isSymbol("("):
			p.expectSymbol(".")
			return p.columns(plain(n))
		case after.kind == number:
			return n // a member, for the loop of operators
		case after.kind == word || after.kind == quoted:
			p.expectSymbol(".")
			n.Parts = append(n.Parts, NamePart{Name: p.name("a name")})
		default:
			p.expectSymbol(".")
			n.Parts = append(n.Parts, p.pathPart())
		}
	}
	if p.peek().isSymbol("(") {
		p.fail("a function has a name of one part")
	}
	return n
}

// pathPart is .^name or .:Type, of a column of type JSON.
func (p *parser) pathPart() NamePart {
	switch {
	case p.acceptSymbol("^"):
		return NamePart{Mark: "^", Name: p.name("a name")}
	case p.acceptSymbol(":"):
		if p.peek().kind == quoted {
			p.fail("expected a type, found %s", p.peek())
		}
		return NamePart{Mark: ":", Name: printType(p.dataType())}
	default:
		p.fail("expected a name after the dot, found %s", p.peek())
		return NamePart{}
	}
}

func plain(n *Name) []string {
	var all []string
	for _, part := range n.Parts {
		all = append(all, part.Name)
	}
	return all
}

// columns is COLUMNS('pattern') or COLUMNS(a, b).
func (p *parser) columns(of []string) Expr {
	p.expect("COLUMNS")
	p.expectSymbol("(")
	s := &Star{Of: of, Columns: true}
	if p.peek().kind == text {
		s.Pattern = p.next().value
	} else {
		s.List = list(p, p.columnName)
	}
	p.expectSymbol(")")
	return p.transformed(s)
}

// columnName is a name, maybe qualified, and nothing else.
func (p *parser) columnName() Expr {
	n := &Name{Pos: p.peek().from}
	n.Parts = append(n.Parts, NamePart{Name: p.name("a column")})
	for p.acceptSymbol(".") {
		n.Parts = append(n.Parts, NamePart{Name: p.name("a column")})
	}
	return n
}

// transformed reads what follows a star.
func (p *parser) transformed(s *Star) Expr {
	for p.err == nil {
		switch {
		case p.peek().is("APPLY"):
			s.Transformers = append(s.Transformers, p.apply())
		case p.peek().is("EXCEPT") && !p.exceptsQuery():
			s.Transformers = append(s.Transformers, p.except())
		case p.peek().is("REPLACE"):
			s.Transformers = append(s.Transformers, p.replace())
		default:
			return s
		}
	}
	return s
}

// exceptsQuery tells SELECT * EXCEPT SELECT from SELECT * EXCEPT column.
func (p *parser) exceptsQuery() bool {
	t := p.ahead(1)
	if t.isSymbol("(") {
		t = p.ahead(2)
		return t.isSymbol("(") || t.is("SELECT") || t.is("WITH") || t.is("FROM")
	}
	return t.is("ALL") || t.is("DISTINCT") || t.is("SELECT") || t.is("WITH") || t.is("FROM")
}

func (p *parser) apply() Transformer {
	p.expect("APPLY")
	t := Transformer{Kind: "APPLY"}
	bracket := p.acceptSymbol("(")
	if bracket && (p.ahead(1).isSymbol("->") || p.peek().isSymbol("(")) {
		t.Func = p.expression(weakest)
		if _, ok := t.Func.(*Lambda); !ok {
			p.fail("expected a lambda")
		}
	} else {
		t.Func = p.appliedFunction()
	}
	if bracket && p.acceptSymbol(",") {
		if p.peek().kind != text {
			p.fail("expected a prefix, found %s", p.peek())
		}
		t.Prefix = p.next().value
	}
	if bracket {
		p.expectSymbol(")")
	}
	return t
}

// appliedFunction is a name, maybe with parameters.
func (p *parser) appliedFunction() Expr {
	c := &Call{Pos: p.peek().from, Name: p.name("a function")}
	if p.acceptSymbol("(") {
		c.Parametric = true
		c.Params = p.arguments()
	}
	return c
}

func (p *parser) except() Transformer {
	p.expect("EXCEPT")
	t := Transformer{Kind: "EXCEPT", Strict: p.accept("STRICT")}
	if !p.acceptSymbol("(") {
		t.Names = []string{p.name("a column")}
		return t
	}
	if p.peek().kind == text {
		t.Pattern = p.next().value
	} else {
		t.Names = p.names("a column")
	}
	p.expectSymbol(")")
	return t
}

func (p *parser) replace() Transformer {
	p.expect("REPLACE")
	t := Transformer{Kind: "REPLACE", Strict: p.accept("STRICT")}
	bracket := p.acceptSymbol("(")
	replacement := func() Expr {
		x := p.item(false)
		if _, ok := x.(*Alias); !ok {
			p.fail("expected AS and a column, found %s", p.peek())
		}
		return x
	}
	if bracket {
		t.Items = list(p, replacement)
		p.expectSymbol(")")
	} else {
		t.Items = []Expr{replacement()}
	}
	return t
}
