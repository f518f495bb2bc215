package parse

import "sandbox/logs/sql/ast"

// caseOf is CASE [x] WHEN ... THEN ... [ELSE ...] END.
func (p *parser) caseOf() ast.Expr {
	defer p.enter()()
	p.expect("CASE")
	c := &ast.Case{}
	if !p.follows("WHEN") {
		c.X = p.item(false)
	}
	for p.accept("WHEN") {
		w := ast.When{If: p.item(false)}
		p.expect("THEN")
		w.Then = p.item(false)
		c.Whens = append(c.Whens, w)
	}
	if len(c.Whens) == 0 {
		p.fail("expected WHEN, found %s", p.peek())
	}
	if p.accept("ELSE") {
		c.Else = p.item(false)
	}
	p.expect("END")
	return c
}
