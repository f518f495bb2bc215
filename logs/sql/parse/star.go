package parse

import "sandbox/logs/sql/ast"

// columns is COLUMNS('pattern') or COLUMNS(a, b).
func (p *parser) columns(of []string) ast.Expr {
	p.expect("COLUMNS")
	p.expectSymbol("(")
	s := &ast.Star{Of: of, Columns: true}
	if p.peek().kind == text {
		s.Pattern = p.next().value
	} else {
		s.List = list(p, p.columnName)
	}
	p.expectSymbol(")")
	return p.transformed(s)
}

// columnName is a name, maybe qualified, and nothing else.
func (p *parser) columnName() ast.Expr {
	n := &ast.Name{Pos: p.peek().from}
	n.Parts = append(n.Parts, ast.NamePart{Name: p.name("a column")})
	for p.acceptSymbol(".") {
		n.Parts = append(n.Parts, ast.NamePart{Name: p.name("a column")})
	}
	return n
}

// transformed reads what follows a star.
func (p *parser) transformed(s *ast.Star) ast.Expr {
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

func (p *parser) apply() ast.Transformer {
	p.expect("APPLY")
	t := ast.Transformer{Kind: "APPLY"}
	bracket := p.acceptSymbol("(")
	if bracket && (p.ahead(1).isSymbol("->") || p.peek().isSymbol("(")) {
		t.Func = p.expression(lowest)
		if _, ok := t.Func.(*ast.Lambda); !ok {
			p.fail("expected a lambda")
		}
	} else {
		t.Func = p.function()
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

// function is a name, maybe with parameters.
func (p *parser) function() *ast.Call {
	c := &ast.Call{Pos: p.peek().from, Name: p.name("a function")}
	if p.acceptSymbol("(") {
		c.Parametric = true
		c.Params = p.arguments()
	}
	return c
}

func (p *parser) except() ast.Transformer {
	p.expect("EXCEPT")
	t := ast.Transformer{Kind: "EXCEPT", Strict: p.accept("STRICT")}
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

func (p *parser) replace() ast.Transformer {
	p.expect("REPLACE")
	t := ast.Transformer{Kind: "REPLACE", Strict: p.accept("STRICT")}
	bracket := p.acceptSymbol("(")
	replacement := func() ast.Expr {
		x := p.item(false)
		if _, ok := x.(*ast.Alias); !ok {
			p.fail("expected AS and a column, found %s", p.peek())
		}
		return x
	}
	if bracket {
		t.Items = list(p, replacement)
		p.expectSymbol(")")
	} else {
		t.Items = []ast.Expr{replacement()}
	}
	return t
}
