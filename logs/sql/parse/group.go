package parse

import "sandbox/logs/sql/ast"

func (p *parser) grouping(s *ast.Select) {
	if p.accept("GROUP", "BY") {
		s.GroupBy = p.groupKeys()
	}
	for p.peek().is("WITH") {
		p.next()
		if s.GroupBy == nil {
			s.GroupBy = &ast.Grouping{}
		}
		switch p.acceptAny("ROLLUP", "CUBE", "TOTALS") {
		case "ROLLUP":
			s.GroupBy.Rollup = true
		case "CUBE":
			s.GroupBy.Cube = true
		case "TOTALS":
			s.GroupBy.Totals = true
		default:
			p.fail("expected ROLLUP, CUBE or TOTALS, found %s", p.peek())
		}
	}
	if p.accept("HAVING") {
		s.Having = p.item(false)
	}
}

func (p *parser) groupKeys() *ast.Grouping {
	g := &ast.Grouping{}
	switch {
	case p.accept("GROUPING", "SETS"):
		g.Form = "GROUPING SETS"
		p.expectSymbol("(")
		g.Sets = list(p, p.groupingSet)
		p.expectSymbol(")")
	case p.ahead(1).isSymbol("(") && (p.follows("ROLLUP") || p.follows("CUBE")):
		g.Form = p.acceptAny("ROLLUP", "CUBE")
		p.expectSymbol("(")
		g.Items = p.items()
		p.expectSymbol(")")
	case p.follows("ALL") && !p.ahead(1).isSymbol(",") && !isOperator(p.ahead(1)):
		p.expect("ALL")
		g.All = true
	default:
		g.Items = p.items()
	}
	return g
}

func (p *parser) groupingSet() []ast.Expr {
	if !p.acceptSymbol("(") {
		return []ast.Expr{p.item(false)}
	}
	var set []ast.Expr
	if !p.peek().isSymbol(")") {
		set = p.items()
	}
	p.expectSymbol(")")
	return set
}
