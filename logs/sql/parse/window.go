package parse

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// namedWindow is name AS (window).
func (p *parser) namedWindow() ast.NamedWindow {
	w := ast.NamedWindow{Name: p.name("a window")}
	p.expect("AS")
	p.expectSymbol("(")
	w.Window = p.window()
	p.expectSymbol(")")
	return w
}

// window is what stands in the brackets of OVER.
func (p *parser) window() *ast.Window {
	defer p.enter()()
	w := &ast.Window{}
	if t := p.peek(); t.kind == quoted || t.kind == word && !p.startsWindowClause() {
		w.Base = p.next().value
	}
	if p.accept("PARTITION", "BY") {
		w.PartitionBy = p.items()
	}
	if p.accept("ORDER", "BY") {
		w.OrderBy = p.ordering()
	}
	if unit := p.acceptAny("ROWS", "RANGE", "GROUPS"); unit != "" {
		w.Frame = p.frame(unit)
	}
	return w
}

func (p *parser) startsWindowClause() bool {
	if p.follows("PARTITION", "BY") || p.follows("ORDER", "BY") {
		return true
	}
	t, after := p.peek(), p.ahead(1)
	return (t.is("ROWS") || t.is("RANGE") || t.is("GROUPS")) && !after.isSymbol(")") && !after.is("PARTITION") && !after.is("ORDER")
}

func (p *parser) frame(unit string) *ast.Frame {
	f := &ast.Frame{Unit: unit}
	if !p.accept("BETWEEN") {
		f.Begin = p.bound()
		return f
	}
	f.Begin = p.bound()
	p.expect("AND")
	f.End = p.bound()
	return f
}

func (p *parser) bound() *ast.Bound {
	if p.accept("CURRENT", "ROW") {
		return &ast.Bound{Side: "CURRENT ROW"}
	}
	b := &ast.Bound{}
	if !p.accept("UNBOUNDED") {
		b.Value = p.expression(precedenceAnd)
	}
	if b.Side = p.acceptAny("PRECEDING", "FOLLOWING"); b.Side == "" {
		p.fail("expected PRECEDING or FOLLOWING, found %s", p.peek())
	}
	b.Side = strings.ToUpper(b.Side)
	return b
}
