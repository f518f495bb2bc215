package parse

import "sandbox/logs/sql/ast"

// startsQuery reports whether a query begins here, behind any brackets.
func (p *parser) startsQuery() bool {
	n := 0
	for n <= maxNesting && p.ahead(n).isSymbol("(") {
		n++
	}
	t := p.ahead(n)
	return t.is("SELECT") || t.is("WITH") || t.is("FROM")
}

// query is SELECTs and queries in brackets, joined by set operators.
func (p *parser) query() *ast.Query {
	defer p.enter()()
	q := &ast.Query{Parts: []ast.Part{p.part("")}}
	for {
		op := p.setOperator()
		if op == "" {
			return q
		}
		q.Parts = append(q.Parts, p.part(op))
	}
}

func (p *parser) part(op string) ast.Part {
	if !p.peek().isSymbol("(") {
		return ast.Part{Op: op, Select: p.selectQuery()}
	}
	q := p.bracketedQuery()
	if len(q.Parts) == 1 && q.Parts[0].Nested != nil {
		q = q.Parts[0].Nested // ((...)) is (...)
	}
	return ast.Part{Op: op, Nested: q}
}

func (p *parser) bracketedQuery() *ast.Query {
	p.expectSymbol("(")
	return p.queryToBracket()
}

// queryToBracket is a query and the bracket behind it.
func (p *parser) queryToBracket() *ast.Query {
	q := p.query()
	for _, clause := range []string{"FORMAT", "INTO", "SETTINGS"} {
		if p.follows(clause) {
			p.refuseClause(p.peek())
		}
	}
	p.expectSymbol(")")
	return q
}

// setOperator is UNION, EXCEPT or INTERSECT with ALL or DISTINCT. The engine takes
// a missing word from its settings. Here it means ALL, and UNION needs one.
func (p *parser) setOperator() string {
	op := p.acceptAny("UNION", "EXCEPT", "INTERSECT")
	if op == "" {
		return ""
	}
	if mode := p.acceptAny("ALL", "DISTINCT"); mode != "" {
		return op + " " + mode
	}
	if op == "UNION" {
		p.fail("expected ALL or DISTINCT after UNION, found %s", p.peek())
	}
	return op + " ALL"
}

func (p *parser) selectQuery() *ast.Select {
	defer p.enter()()
	s := &ast.Select{}
	if p.accept("WITH") {
		s.Recursive = p.accept("RECURSIVE")
		s.With = list(p, p.with)
	}
	if p.accept("FROM") {
		s.From = p.from(false)
	}
	if !p.accept("SELECT") {
		p.fail("expected SELECT, found %s", p.peek())
	}
	p.selection(s)
	if s.From == nil && p.accept("FROM") {
		s.From = p.from(true)
	}
	if p.accept("PREWHERE") {
		s.Prewhere = p.item(false)
	}
	if p.accept("WHERE") {
		s.Where = p.item(false)
	}
	p.grouping(s)
	if p.accept("WINDOW") {
		s.Windows = list(p, p.namedWindow)
	}
	if p.accept("QUALIFY") {
		s.Qualify = p.item(false)
	}
	if p.accept("ORDER", "BY") {
		s.OrderBy = p.ordering()
	}
	p.limits(s)
	return s
}

// with is name AS (query), name (columns) AS (query), or an expression.
func (p *parser) with() ast.With {
	pos := p.peek().from
	var w ast.With
	if ok, _ := p.try(func() { w = p.namedQueryHead() }); !ok {
		return ast.With{Pos: pos, Expr: p.item(false)}
	}
	w.Query = p.bracketedQuery()
	w.Pos = pos
	return w
}

func (p *parser) namedQueryHead() (w ast.With) {
	w.Name = p.name("a name")
	if p.acceptSymbol("(") {
		w.Columns = p.names("a column name")
		p.expectSymbol(")")
	}
	p.expect("AS")
	if !p.peek().isSymbol("(") || !p.startsQuery() {
		p.fail("expected a query in brackets, found %s", p.peek())
	}
	return w
}

// selection is what stands between SELECT and FROM.
func (p *parser) selection(s *ast.Select) {
	all := p.acceptModifier("ALL")
	switch {
	case p.follows("DISTINCT", "ON") && p.ahead(2).isSymbol("("):
		p.expect("DISTINCT", "ON")
		p.expectSymbol("(")
		s.DistinctOn = p.items()
		p.expectSymbol(")")
	default:
		s.Distinct = p.acceptModifier("DISTINCT")
	}
	if all && (s.Distinct || s.DistinctOn != nil) {
		p.fail("ALL and DISTINCT exclude each other")
	}
	if p.follows("TOP") {
		p.top(s)
	}
	p.selected(s)
	for p.peek().isSymbol(",") && !p.trailingComma() {
		p.expectSymbol(",")
		p.selected(s)
	}
	if p.trailingComma() {
		p.expectSymbol(",")
	}
}

// selected is one item of a selection. Its text is kept beside it.
func (p *parser) selected(s *ast.Select) {
	from := p.peek().from
	s.Items = append(s.Items, p.item(true))
	if p.err == nil {
		s.Texts = append(s.Texts, p.source[from:p.tokens[p.at-1].to])
	}
}

// acceptModifier passes the keyword unless it is a column of that name.
func (p *parser) acceptModifier(keyword string) bool {
	switch after := p.ahead(1); {
	case after.isSymbol(","), after.isSymbol("."), after.kind == end, after.is("AS"), after.is("FROM"):
		return false
	default:
		return p.accept(keyword)
	}
}

// trailingComma reports whether a comma is next behind which nothing is selected,
// as it stands before FROM or the end.
func (p *parser) trailingComma() bool {
	if !p.peek().isSymbol(",") {
		return false
	}
	from, table := p.ahead(1), p.ahead(2)
	if from.kind == end || from.isSymbol(";") || from.isSymbol(")") {
		return true
	}
	isTable := table.isSymbol("(") || table.kind == quoted || table.kind == word && !table.is("AS") && !table.is("FROM") && !isOperator(table)
	return from.is("FROM") && isTable
}

// top is TOP n, which is LIMIT n; a column may have that name.
func (p *parser) top(s *ast.Select) {
	bracket := p.ahead(1).isSymbol("(") && p.ahead(2).kind == number && p.ahead(3).isSymbol(")")
	if !bracket && p.ahead(1).kind != number {
		return
	}
	p.expect("TOP")
	if bracket {
		p.expectSymbol("(")
	}
	s.Limit = &ast.Literal{Form: ast.Number, Value: p.next().value}
	if bracket {
		p.expectSymbol(")")
	}
	s.WithTies = p.accept("WITH", "TIES")
}
