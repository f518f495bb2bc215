package parse

import "sandbox/logs/sql/ast"

// items are expressions with commas between them.
func (p *parser) items() []ast.Expr {
	return list(p, func() ast.Expr { return p.item(false) })
}

// item is an expression with an alias; with bare, AS may be missing.
func (p *parser) item(bare bool) ast.Expr { return p.aliased(p.expression(weakest), bare) }

func (p *parser) aliased(x ast.Expr, bare bool) ast.Expr {
	switch {
	case p.accept("AS"):
		return &ast.Alias{X: x, Name: p.name("an alias")}
	case bare && p.isBareAlias(p.peek()):
		return &ast.Alias{X: x, Name: p.next().value}
	default:
		return x
	}
}

// expression reads operators stronger than the given strength.
func (p *parser) expression(above int) ast.Expr {
	defer p.enter()()
	x := p.operand()
	if above == weakest && p.peek().isSymbol("->") {
		return p.lambda(x)
	}
	return p.operators(x, above)
}

// operators goes on behind the first operand.
func (p *parser) operators(x ast.Expr, above int) ast.Expr {
	for height := p.depth; ; {
		bigger, ok := p.extend(x, above)
		if !ok {
			return x
		}
		x = bigger
		if height++; height > maxNesting {
			p.fail("more than %d operators in a row: use brackets or functions", maxNesting)
			p.fatal = true
		}
	}
}

// extend reads one operator after x, and its right side.
func (p *parser) extend(x ast.Expr, above int) (ast.Expr, bool) {
	if y, ok := p.postfix(x); ok {
		return y, true
	}
	t := p.peek()
	switch {
	case above < strengthIs && t.is("IS") && !p.follows("IS", "DISTINCT") && !p.follows("IS", "NOT", "DISTINCT"):
		return p.truthTest(x), true
	case above < strengthBetween && (t.is("BETWEEN") || p.follows("NOT", "BETWEEN")):
		return p.between(x), true
	case above < strengthTernary && t.isSymbol("?"):
		return p.ternary(x), true
	case above < strengthZone && p.follows("AT", "TIME", "ZONE"):
		return p.atTimeZone(x), true
	}
	j := p.followsJoint()
	if j == nil || j.strength <= above {
		return nil, false
	}
	return p.binary(x, j), true
}

func (p *parser) binary(left ast.Expr, j *joint) ast.Expr {
	pos := p.peek().from
	p.passJoint(j)
	if chained[j.op] {
		c := &ast.Chain{Op: j.op, Items: []ast.Expr{left, p.expression(j.strength)}}
		for next := p.followsJoint(); next == j; next = p.followsJoint() {
			p.passJoint(j)
			c.Items = append(c.Items, p.expression(j.strength))
		}
		return c
	}
	if comparisons[j.op] {
		if right := p.quantified(); right != nil {
			return &ast.Binary{Pos: pos, Op: j.op, L: left, R: right}
		}
	}
	right := p.expression(j.strength)
	if f := likes[j.op]; f != "" && p.follows("ESCAPE") && p.ahead(1).kind == text {
		p.expect("ESCAPE")
		return &ast.Call{Pos: pos, Name: f, Args: []ast.Expr{left, right, p.textLiteral()}}
	}
	return &ast.Binary{Pos: pos, Op: j.op, L: left, R: right}
}

func (p *parser) atTimeZone(x ast.Expr) ast.Expr {
	pos := p.peek().from
	p.expect("AT", "TIME", "ZONE")
	return &ast.Call{Pos: pos, Name: "toTimeZone", Args: []ast.Expr{x, p.expression(strengthZone)}}
}

func (p *parser) passJoint(j *joint) {
	for range j.words {
		p.next()
	}
}

// quantified is ANY (query), which SOME is too, or ALL (query).
func (p *parser) quantified() ast.Expr {
	if !p.ahead(1).isSymbol("(") {
		return nil
	}
	if t := p.ahead(2); !t.is("SELECT") && !t.is("WITH") && !t.is("FROM") {
		return nil
	}
	switch p.acceptAny("ANY", "SOME", "ALL") {
	case "":
		return nil
	case "ALL":
		return &ast.Subquery{Of: "ALL", Query: p.bracketedQuery()}
	default:
		return &ast.Subquery{Of: "ANY", Query: p.bracketedQuery()}
	}
}

// truthTest is IS NULL and its relatives.
func (p *parser) truthTest(x ast.Expr) ast.Expr {
	p.expect("IS")
	not := p.accept("NOT")
	switch word := p.acceptAny("NULL", "UNKNOWN", "TRUE", "FALSE"); word {
	case "NULL", "UNKNOWN":
		return &ast.NullTest{X: x, Not: not}
	case "":
		p.fail("expected NULL, found %s", p.peek())
		return x
	default:
		op := "IS NOT DISTINCT FROM"
		if not {
			op = "IS DISTINCT FROM"
		}
		return &ast.Binary{Op: op, L: x, R: keywordLiteral(word)}
	}
}

func (p *parser) between(x ast.Expr) ast.Expr {
	b := &ast.Between{X: x, Not: p.accept("NOT")}
	p.expect("BETWEEN")
	b.Low = p.expression(strengthBetween)
	p.expect("AND")
	b.High = p.expression(strengthBetween)
	return b
}

func (p *parser) ternary(x ast.Expr) ast.Expr {
	p.expectSymbol("?")
	t := &ast.Ternary{If: x, Then: p.expression(strengthTernary)}
	p.expectSymbol(":")
	t.Else = p.expression(strengthTernary)
	return t
}

// lambda takes what stands before the arrow as its parameters.
func (p *parser) lambda(x ast.Expr) ast.Expr {
	params, ok := lambdaParams(x)
	if !ok {
		p.fail("before -> stand names: x, or (x, y)")
	}
	p.expectSymbol("->")
	return &ast.Lambda{Params: params, Body: p.expression(weakest)}
}

func lambdaParams(x ast.Expr) ([]string, bool) {
	switch x := x.(type) {
	case *ast.Name:
		if len(x.Parts) == 1 {
			return []string{x.Parts[0].Name}, true
		}
	case *ast.Tuple:
		var all []string
		for _, item := range x.Items {
			name, ok := item.(*ast.Name)
			if !ok || len(name.Parts) != 1 {
				return nil, false
			}
			all = append(all, name.Parts[0].Name)
		}
		return all, len(all) > 0
	}
	return nil, false
}

// postfix is x[i], x.1, x.name, x::T.
func (p *parser) postfix(x ast.Expr) (ast.Expr, bool) {
	switch {
	case p.acceptSymbol("["):
		i := &ast.Index{X: x, I: p.item(false)}
		p.expectSymbol("]")
		return i, true
	case p.acceptSymbol("."):
		return p.member(x), true
	case p.acceptSymbol("::"):
		return &ast.Cast{X: x, Type: p.dataType()}, true
	default:
		return nil, false
	}
}

func (p *parser) member(x ast.Expr) ast.Expr {
	if _, ok := x.(*ast.Literal); ok {
		x = &ast.Paren{X: x} // as it must be written: the dot would be the number's
	}
	switch t := p.peek(); t.kind {
	case number:
		return &ast.Member{X: x, Name: p.next().value, Numeric: true}
	case word, quoted:
		return &ast.Member{X: x, Name: p.name("a name")}
	default:
		p.fail("expected a name or a number after the dot, found %s", t)
		return x
	}
}
