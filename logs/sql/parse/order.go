package parse

import "sandbox/logs/sql/ast"

// ordering is what follows ORDER BY.
func (p *parser) ordering() *ast.Ordering {
	o := &ast.Ordering{}
	if ok, _ := p.try(func() { p.orderByAll(o) }); !ok {
		*o = ast.Ordering{Items: list(p, p.orderItem)}
	}
	filled := false
	for _, item := range o.Items {
		filled = filled || item.Fill != nil
	}
	if filled && p.accept("INTERPOLATE") {
		o.Interpolating = true
		p.interpolate(o)
	}
	return o
}

// orderByAll is ALL. It fails where ALL is a column: the caller then reads it as
// one, so nobody sees the message.
func (p *parser) orderByAll(o *ast.Ordering) {
	p.expect("ALL")
	if isOperator(p.peek()) || p.peek().isSymbol("(") {
		p.fail("a column")
	}
	o.All = true
	o.Items = []ast.OrderItem{{}}
	p.direction(&o.Items[0])
	if p.peek().isSymbol(",") {
		p.fail("a column")
	}
}

func (p *parser) orderItem() ast.OrderItem {
	item := ast.OrderItem{Expr: p.item(false)}
	p.direction(&item)
	if p.accept("COLLATE") {
		if p.peek().kind != text {
			p.fail("expected the name of a collation, found %s", p.peek())
		}
		item.Collate = p.next().value
	}
	if p.accept("WITH", "FILL") {
		item.Fill = p.fill()
	}
	return item
}

func (p *parser) direction(item *ast.OrderItem) {
	switch p.acceptAny("DESC", "DESCENDING", "ASC", "ASCENDING") {
	case "DESC", "DESCENDING":
		item.Desc = true
	}
	if p.accept("NULLS") {
		if item.Nulls = p.acceptAny("FIRST", "LAST"); item.Nulls == "" {
			p.fail("expected FIRST or LAST, found %s", p.peek())
		}
	}
}

func (p *parser) fill() *ast.Fill {
	f := &ast.Fill{}
	if p.accept("FROM") {
		f.From = p.item(false)
	}
	if p.accept("TO") {
		f.To = p.item(false)
	}
	if p.accept("STEP") {
		f.Step = p.item(false)
	}
	if p.accept("STALENESS") {
		f.Staleness = p.item(false)
	}
	return f
}

func (p *parser) interpolate(o *ast.Ordering) {
	if !p.acceptSymbol("(") {
		return
	}
	if !p.peek().isSymbol(")") {
		o.Interpolate = list(p, func() ast.Interpolation {
			i := ast.Interpolation{Column: p.name("a column")}
			if p.accept("AS") {
				i.Expr = p.expression(lowest)
			}
			return i
		})
	}
	p.expectSymbol(")")
}
