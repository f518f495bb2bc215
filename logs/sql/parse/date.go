package parse

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// extract is EXTRACT(unit FROM x), or the function of regular expressions.
func (p *parser) extract(pos int) ast.Expr {
	if !p.ahead(1).is("FROM") || p.peek().kind != word {
		return p.plainCall(pos, "extract")
	}
	part := p.next().value
	p.expect("FROM")
	return p.datePartOf(pos, part)
}

// datePart is date_part('unit', x), which is EXTRACT(unit FROM x).
func (p *parser) datePart(pos int) ast.Expr {
	if p.peek().kind != text {
		p.fail("expected a unit of time as a string, found %s", p.peek())
	}
	part := p.next().value
	p.expectSymbol(",")
	return p.datePartOf(pos, part)
}

// datePartOf reads x and the closing bracket, and returns the function that the
// engine calls for the unit.
func (p *parser) datePartOf(pos int, part string) ast.Expr {
	x := p.item(false)
	p.expectSymbol(")")
	call := func(name string, args ...ast.Expr) ast.Expr { return &ast.Call{Pos: pos, Name: name, Args: args} }
	whole := func(n string) ast.Expr { return &ast.Literal{Form: ast.Number, Value: n} }
	ages := func(years string) ast.Expr { // the first one begins with year 1
		return call("plus", call("intDiv", call("minus", call("toYear", x), whole("1")), whole(years)), whole("1"))
	}
	switch strings.ToLower(part) {
	case "epoch":
		return call("toUnixTimestamp", x)
	case "dow":
		return call("toDayOfWeek", x, whole("2"))
	case "doy":
		return call("toDayOfYear", x)
	case "isodow":
		return call("toDayOfWeek", x)
	case "isoyear":
		return call("toISOYear", x)
	case "decade":
		return call("intDiv", call("toYear", x), whole("10"))
	case "century":
		return ages("100")
	case "millennium":
		return ages("1000")
	}
	if u := unitOf(part); u != nil {
		return call(u.function, x)
	}
	p.fail("%s is not a unit of time", ast.Short(part))
	return x
}

// dateAdd is DATE_ADD(unit, n, date) or DATE_ADD(x, y).
func (p *parser) dateAdd(pos int, name string) ast.Expr {
	if u := p.leadingUnit(); u != nil {
		n := p.item(false)
		p.expectSymbol(",")
		c := &ast.Call{Pos: pos, Name: name, Args: []ast.Expr{p.item(false), intervalCall(pos, u, n)}}
		p.expectSymbol(")")
		return c
	}
	return p.plainCall(pos, name)
}

// dateDiff is dateDiff('unit', a, b), where the unit may stand bare.
func (p *parser) dateDiff(pos int) ast.Expr {
	u := p.leadingUnit()
	c := &ast.Call{Pos: pos, Name: "dateDiff", Args: p.arguments()}
	if u != nil {
		c.Args = append([]ast.Expr{&ast.Literal{Form: ast.Text, Value: strings.ToLower(u.name)}}, c.Args...)
	}
	return c
}

// leadingUnit passes a unit and its comma, and returns the unit, or nil where
// something else stands.
func (p *parser) leadingUnit() *unit {
	if p.peek().kind != word || !p.ahead(1).isSymbol(",") {
		return nil
	}
	u := unitOf(p.peek().value)
	if u != nil {
		p.next()
		p.expectSymbol(",")
	}
	return u
}
