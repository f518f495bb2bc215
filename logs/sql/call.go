package sql

import "strings"

// call reads a function from its bracket on. Forms with words between their
// arguments become the functions that the engine makes of them.
func (p *parser) call(pos int, name string) Expr {
	defer p.enter()()
	p.expectSymbol("(")
	if form := callForms[strings.ToLower(name)]; form != nil {
		return form(p, pos)
	}
	c := &Call{Pos: pos, Name: name}
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
func (p *parser) distinct(c *Call) {
	if after := p.ahead(1); after.isSymbol(",") || after.isSymbol(")") || isOperator(after) && !after.isSymbol("*") && !after.isSymbol("-") {
		return
	}
	if p.acceptAny("DISTINCT", "ALL") == "DISTINCT" {
		c.Distinct = true
	}
}

// arguments are expressions up to the closing bracket.
func (p *parser) arguments() []Expr {
	var args []Expr
	if !p.peek().isSymbol(")") {
		args = p.items()
	}
	p.expectSymbol(")")
	return args
}

// callClauses are FILTER, NULLS and OVER.
func (p *parser) callClauses(c *Call) {
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

// callForms are the functions with a syntax of their own, by lower-case name.
// Each reads on behind the bracket.
var callForms map[string]func(p *parser, pos int) Expr

func init() { // they call each other through the parser
	dateAdd := func(name string) func(*parser, int) Expr {
		return func(p *parser, pos int) Expr { return p.dateAdd(pos, name) }
	}
	callForms = map[string]func(*parser, int) Expr{
		"cast":      (*parser).cast,
		"exists":    (*parser).exists,
		"date_part": (*parser).datePart,
		"datepart":  (*parser).datePart,
		"extract":   (*parser).extract,
		"position":  (*parser).position,
		"substring": (*parser).substring,
		"overlay":   (*parser).overlay,
		"trim":      (*parser).trim,
		"ltrim":     func(p *parser, pos int) Expr { return p.plainCall(pos, "trimLeft") },
		"rtrim":     func(p *parser, pos int) Expr { return p.plainCall(pos, "trimRight") },
	}
	for _, name := range []string{"date_add", "dateadd", "timestamp_add", "timestampadd"} {
		callForms[name] = dateAdd("plus")
	}
	for _, name := range []string{"date_sub", "datesub", "timestamp_sub", "timestampsub"} {
		callForms[name] = dateAdd("minus")
	}
	for _, name := range []string{"date_diff", "datediff", "timestamp_diff", "timestampdiff"} {
		callForms[name] = (*parser).dateDiff
	}
}

func (p *parser) plainCall(pos int, name string) Expr {
	return &Call{Pos: pos, Name: name, Args: p.arguments()}
}

// cast is CAST(x AS T), CAST(x, 'T'), and both with an alias for x.
func (p *parser) cast(pos int) Expr {
	x := p.expression(weakest)
	if p.accept("AS") {
		alias := ""
		aliased, _ := p.try(func() { alias = p.castAlias() })
		if aliased {
			x = &Alias{X: x, Name: alias}
		}
		if !aliased || p.accept("AS") {
			c := &Cast{X: x, Type: p.dataType()}
			p.expectSymbol(")")
			return c
		}
	} else if p.isBareAlias(p.peek()) {
		x = &Alias{X: x, Name: p.next().value}
	}
	p.expectSymbol(",")
	c := &Call{Pos: pos, Name: "CAST", Args: []Expr{x, p.item(true)}}
	p.expectSymbol(")")
	return c
}

// castAlias is a name before a further AS or a comma; else it is the type.
func (p *parser) castAlias() string {
	alias := p.name("an alias")
	if !p.follows("AS") && !p.peek().isSymbol(",") {
		p.fail("expected AS")
	}
	return alias
}

func (p *parser) exists(int) Expr {
	s := &Subquery{Exists: true, Query: p.queryToBracket()}
	if len(s.Query.Parts) == 1 && s.Query.Parts[0].Nested != nil {
		s.Query = s.Query.Parts[0].Nested
	}
	return s
}

// position is position(where, what) or position(what IN where).
func (p *parser) position(pos int) Expr {
	c := &Call{Pos: pos, Name: "position"}
	if p.acceptSymbol(")") {
		return c
	}
	first := p.expression(strengthCompare)
	if p.accept("IN") {
		c.Args = []Expr{p.item(false), first}
		p.expectSymbol(")")
		return c
	}
	c.Args = []Expr{p.aliased(p.operators(first, weakest), false)}
	if p.acceptSymbol(",") {
		c.Args = append(c.Args, p.items()...)
	}
	p.expectSymbol(")")
	return c
}

// substring separates its arguments by commas or by FROM and FOR.
func (p *parser) substring(pos int) Expr {
	return p.separated(pos, "substring", "FROM", "FOR")
}

// overlay separates them by PLACING, FROM and FOR.
func (p *parser) overlay(pos int) Expr {
	return p.separated(pos, "overlay", "PLACING", "FROM", "FOR")
}

func (p *parser) separated(pos int, name string, words ...string) Expr {
	c := &Call{Pos: pos, Name: name, Args: []Expr{p.item(false)}}
	for _, w := range words {
		if !p.acceptSymbol(",") && !p.accept(w) {
			break
		}
		c.Args = append(c.Args, p.item(false))
	}
	p.expectSymbol(")")
	return c
}

// sides are the functions that TRIM becomes.
var sides = map[string]string{"BOTH": "trimBoth", "LEADING": "trimLeft", "TRAILING": "trimRight"}

// trim is trim(x), or TRIM(BOTH what FROM x).
func (p *parser) trim(pos int) Expr {
	if after := p.ahead(1); after.isSymbol(",") || after.isSymbol(")") || isOperator(after) {
		return p.plainCall(pos, "trimBoth")
	}
	side := p.acceptAny("BOTH", "LEADING", "TRAILING")
	if side == "" {
		return p.plainCall(pos, "trimBoth")
	}
	what := p.item(false)
	p.expect("FROM")
	x := p.item(false)
	p.expectSymbol(")")
	if l, ok := what.(*Literal); ok && l.Form == Text && l.Value == "" {
		return x // nothing to take away
	}
	return &Call{Pos: pos, Name: sides[side], Args: []Expr{x, what}}
}
