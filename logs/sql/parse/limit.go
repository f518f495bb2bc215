package parse

import "sandbox/logs/sql/ast"

// limits are LIMIT BY, then LIMIT, OFFSET or FETCH.
func (p *parser) limits(s *ast.Select) {
	for p.accept("LIMIT") {
		if s.Limit != nil {
			p.fail("a second LIMIT")
		}
		limit, offset, ties := p.limit()
		if !p.accept("BY") {
			s.Limit, s.Offset, s.WithTies = limit, offset, ties
			continue
		}
		if s.LimitBy != nil || s.DistinctOn != nil || ties {
			p.fail("LIMIT BY is allowed once, and not together with DISTINCT ON or WITH TIES")
		}
		s.LimitBy = &ast.LimitBy{Limit: limit, Offset: offset}
		if s.LimitBy.All = p.limitByAll(); !s.LimitBy.All {
			s.LimitBy.Items = p.items()
		}
	}
	if s.Offset == nil && p.accept("OFFSET") {
		s.Offset = p.item(false)
		if p.acceptAny("ROWS", "ROW") != "" {
			p.fetch(s)
		}
		return
	}
	p.fetch(s)
}

func (p *parser) limitByAll() bool {
	after := p.ahead(1)
	return !after.isSymbol(",") && !isOperator(after) && p.accept("ALL")
}

// limit is n, m, n or n OFFSET m.
func (p *parser) limit() (limit, offset ast.Expr, ties bool) {
	limit = p.item(false)
	switch {
	case p.acceptSymbol(","):
		offset, limit = limit, p.item(false)
	case p.accept("OFFSET"):
		offset = p.item(false)
	}
	return limit, offset, p.accept("WITH", "TIES")
}

// fetch is FETCH, the LIMIT of the SQL standard.
func (p *parser) fetch(s *ast.Select) {
	if s.Limit != nil || !p.accept("FETCH") {
		return
	}
	if p.acceptAny("FIRST", "NEXT") == "" {
		p.fail("expected FIRST or NEXT, found %s", p.peek())
	}
	s.Limit = p.item(false)
	if p.acceptAny("ROWS", "ROW") == "" {
		p.fail("expected ROWS, found %s", p.peek())
	}
	if s.OrderBy == nil {
		p.fail("FETCH needs ORDER BY")
	}
	if !p.accept("ONLY") {
		p.expect("WITH", "TIES")
		s.WithTies = true
	}
}
