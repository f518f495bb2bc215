package parse

import "sandbox/logs/sql/ast"

// callForm reads the arguments of a function that has a syntax of its own, from
// behind its bracket.
func (p *parser) callForm(pos int, form string) ast.Expr {
	switch form {
	case "cast":
		return p.cast(pos)
	case "exists":
		return p.exists()
	case "date_part":
		return p.datePart(pos)
	case "extract":
		return p.extract(pos)
	case "date_add":
		return p.dateAdd(pos, "plus")
	case "date_sub":
		return p.dateAdd(pos, "minus")
	case "date_diff":
		return p.dateDiff(pos)
	case "position":
		return p.position(pos)
	case "substring":
		return p.separated(pos, "substring", "FROM", "FOR")
	case "overlay":
		return p.separated(pos, "overlay", "PLACING", "FROM", "FOR")
	case "trim":
		return p.trim(pos)
	case "ltrim":
		return p.plainCall(pos, "trimLeft")
	case "rtrim":
		return p.plainCall(pos, "trimRight")
	default:
		p.fail("the syntax of this function is not known")
		return &ast.Tuple{}
	}
}

func (p *parser) plainCall(pos int, name string) ast.Expr {
	return &ast.Call{Pos: pos, Name: name, Args: p.arguments()}
}

// cast is CAST(x AS T), CAST(x, 'T'), and both with an alias for x.
func (p *parser) cast(pos int) ast.Expr {
	x := p.expression(lowest)
	if p.accept("AS") {
		alias := ""
		aliased, _ := p.try(func() { alias = p.castAlias() })
		if aliased {
			x = &ast.Alias{X: x, Name: alias}
		}
		if !aliased || p.accept("AS") {
			c := &ast.Cast{X: x, Type: p.dataType()}
			p.expectSymbol(")")
			return c
		}
	} else if p.isBareAlias(p.peek()) {
		x = &ast.Alias{X: x, Name: p.next().value}
	}
	p.expectSymbol(",")
	c := &ast.Call{Pos: pos, Name: "CAST", Args: []ast.Expr{x, p.item(true)}}
	p.expectSymbol(")")
	return c
}

// castAlias is the alias in CAST(x AS alias AS T) and CAST(x AS alias, T). It fails
// where the name is the type.
func (p *parser) castAlias() string {
	alias := p.name("an alias")
	if !p.follows("AS") && !p.peek().isSymbol(",") {
		p.fail("expected AS")
	}
	return alias
}

// exists is EXISTS(query).
func (p *parser) exists() ast.Expr {
	s := &ast.Subquery{Exists: true, Query: p.queryToBracket()}
	if len(s.Query.Parts) == 1 && s.Query.Parts[0].Nested != nil {
		s.Query = s.Query.Parts[0].Nested
	}
	return s
}

// position is position(where, what) or position(what IN where).
func (p *parser) position(pos int) ast.Expr {
	c := &ast.Call{Pos: pos, Name: "position"}
	if p.acceptSymbol(")") {
		return c
	}
	first := p.expression(precedenceCompare)
	if p.accept("IN") {
		c.Args = []ast.Expr{p.item(false), first}
		p.expectSymbol(")")
		return c
	}
	c.Args = []ast.Expr{p.aliased(p.operators(first, lowest), false)}
	if p.acceptSymbol(",") {
		c.Args = append(c.Args, p.items()...)
	}
	p.expectSymbol(")")
	return c
}

// separated reads arguments with commas or the given words between them, such
// as SUBSTRING(x FROM a FOR n).
func (p *parser) separated(pos int, name string, words ...string) ast.Expr {
	c := &ast.Call{Pos: pos, Name: name, Args: []ast.Expr{p.item(false)}}
	for _, w := range words {
		if !p.acceptSymbol(",") && !p.accept(w) {
			break
		}
		c.Args = append(c.Args, p.item(false))
	}
	p.expectSymbol(")")
	return c
}

// sides are the functions that TRIM becomes.
var sides = map[string]string{"BOTH": "trimBoth", "LEADING": "trimLeft", "TRAILING": "trimRight"}

// trim is trim(x), or TRIM(BOTH what FROM x).
func (p *parser) trim(pos int) ast.Expr {
	if after := p.ahead(1); after.isSymbol(",") || after.isSymbol(")") || isOperator(after) {
		return p.plainCall(pos, "trimBoth")
	}
	side := p.acceptAny("BOTH", "LEADING", "TRAILING")
	if side == "" {
		return p.plainCall(pos, "trimBoth")
	}
	what := p.item(false)
	p.expect("FROM")
	x := p.item(false)
	p.expectSymbol(")")
	if l, ok := what.(*ast.Literal); ok && l.Form == ast.Text && l.Value == "" {
		return x // nothing to take away
	}
	return &ast.Call{Pos: pos, Name: sides[side], Args: []ast.Expr{x, what}}
}
