package parse

import "sandbox/logs/sql/ast"

// items are expressions with commas between them.
func (p *parser) items() []ast.Expr {
	return list(p, func() ast.Expr { return p.item(false) })
}

// item is an expression, maybe with an alias. Where bare is true, the alias may
// stand without AS.
func (p *parser) item(bare bool) ast.Expr { return p.aliased(p.expression(lowest), bare) }

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

// expression is an operand and what follows it, as far as operators have a higher
// precedence than above.
func (p *parser) expression(above int) ast.Expr {
	defer p.enter()()
	x := p.operand()
	if above == lowest && p.peek().isSymbol("->") {
		return p.lambda(x)
	}
	return p.operators(x, above)
}

// operators is what follows the operand x: operators of a higher precedence than
// above, with their operands.
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

// extend reads one operator behind x with what stands right of it, and reports
// whether there was one.
func (p *parser) extend(x ast.Expr, above int) (ast.Expr, bool) {
	if y, ok := p.postfix(x); ok {
		return y, true
	}
	t := p.peek()
	switch {
	case above < precedenceIs && t.is("IS") && !p.follows("IS", "DISTINCT") && !p.follows("IS", "NOT", "DISTINCT"):
		return p.truthTest(x), true
	case above < precedenceBetween && (t.is("BETWEEN") || p.follows("NOT", "BETWEEN")):
		return p.between(x), true
	case above < precedenceTernary && t.isSymbol("?"):
		return p.ternary(x), true
	case above < precedenceZone && p.follows("AT", "TIME", "ZONE"):
		return p.atTimeZone(x), true
	}
	j := p.nextInfix()
	if j == nil || j.precedence <= above {
		return nil, false
	}
	return p.binary(x, j), true
}

func (p *parser) binary(left ast.Expr, j *infix) ast.Expr {
	pos := p.peek().from
	p.passInfix(j)
	if chained[j.op] {
		c := &ast.Chain{Op: j.op, Items: []ast.Expr{left, p.expression(j.precedence)}}
		for next := p.nextInfix(); next == j; next = p.nextInfix() {
			p.passInfix(j)
			c.Items = append(c.Items, p.expression(j.precedence))
		}
		return c
	}
	if comparisons[j.op] {
		if right := p.quantified(); right != nil {
			return &ast.Binary{Pos: pos, Op: j.op, L: left, R: right}
		}
	}
	right := p.expression(j.precedence)
	if f := likes[j.op]; f != "" && p.follows("ESCAPE") && p.ahead(1).kind == text {
		p.expect("ESCAPE")
		return &ast.Call{Pos: pos, Name: f, Args: []ast.Expr{left, right, p.textLiteral()}}
	}
	return &ast.Binary{Pos: pos, Op: j.op, L: left, R: right}
}

func (p *parser) atTimeZone(x ast.Expr) ast.Expr {
	pos := p.peek().from
	p.expect("AT", "TIME", "ZONE")
	return &ast.Call{Pos: pos, Name: "toTimeZone", Args: []ast.Expr{x, p.expression(precedenceZone)}}
}

func (p *parser) passInfix(j *infix) {
	for range j.words {
		p.next()
	}
}

// quantified is ALL (query) or ANY (query), which may be written SOME (query). It
// returns nil where something else stands.
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
	b.Low = p.expression(precedenceBetween)
	p.expect("AND")
	b.High = p.expression(precedenceBetween)
	return b
}

func (p *parser) ternary(x ast.Expr) ast.Expr {
	p.expectSymbol("?")
	t := &ast.Ternary{If: x, Then: p.expression(precedenceTernary)}
	p.expectSymbol(":")
	t.Else = p.expression(precedenceTernary)
	return t
}

// lambda is x -> body or (x, y) -> body. Its parameters have been read as the
// expression x.
func (p *parser) lambda(x ast.Expr) ast.Expr {
	params, ok := lambdaParams(x)
	if !ok {
		p.fail("only names may be before ->: x, or (x, y)")
	}
	p.expectSymbol("->")
	return &ast.Lambda{Params: params, Body: p.expression(lowest)}
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
		x = &ast.Paren{X: x} // or the dot would be printed as a part of the number
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
