package parse

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// call reads a function from its bracket on. Forms with words between their
// arguments become the functions that the engine makes of them.
func (p *parser) call(pos int, name string) ast.Expr {
	defer p.enter()()
	p.expectSymbol("(")
	if form := ast.CallForm(name); form != "" {
		return p.callForm(pos, form)
	}
	c := &ast.Call{Pos: pos, Name: name}
	p.distinct(c)
	c.Args = p.arguments()
	if !c.Distinct && p.acceptSymbol("(") {
		c.Parametric, c.Params, c.Args = true, c.Args, nil
		p.distinct(c)
		c.Args = p.arguments()
	}
	p.callClauses(c)
	return c
}

// distinct passes DISTINCT or ALL, which may also be columns.
func (p *parser) distinct(c *ast.Call) {
	if after := p.ahead(1); after.isSymbol(",") || after.isSymbol(")") || isOperator(after) && !after.isSymbol("*") && !after.isSymbol("-") {
		return
	}
	if p.acceptAny("DISTINCT", "ALL") == "DISTINCT" {
		c.Distinct = true
	}
}

// arguments are expressions up to the closing bracket.
func (p *parser) arguments() []ast.Expr {
	var args []ast.Expr
	if !p.peek().isSymbol(")") {
		args = p.items()
	}
	p.expectSymbol(")")
	return args
}

// callClauses are FILTER, NULLS and OVER.
func (p *parser) callClauses(c *ast.Call) {
	if p.follows("FILTER") && p.ahead(1).isSymbol("(") {
		p.expect("FILTER")
		p.expectSymbol("(")
		p.expect("WHERE")
		c.Filter = p.item(false)
		p.expectSymbol(")")
	}
	if p.follows("RESPECT", "NULLS") || p.follows("IGNORE", "NULLS") {
		c.Nulls = strings.ToUpper(p.next().value)
		p.expect("NULLS")
	}
	if !p.accept("OVER") {
		return
	}
	if p.acceptSymbol("(") {
		c.Over = p.window()
		p.expectSymbol(")")
		return
	}
	c.OverName = p.name("a window")
}
