package sql

import (
	"slices"
	"strings"
)

// A unit of time with its spellings. Function is what EXTRACT becomes.
type unit struct {
	name      string
	function  string
	spellings []string
}

var units = []unit{
	{"Nanosecond", "toNanosecond", []string{"ns"}},
	{"Microsecond", "toMicrosecond", nil},
	{"Millisecond", "toMillisecond", []string{"ms"}},
	{"Second", "toSecond", []string{"ss", "s"}},
	{"Minute", "toMinute", []string{"mi", "n"}},
	{"Hour", "toHour", []string{"hh", "h"}},
	{"Day", "toDayOfMonth", []string{"dd", "d"}},
	{"Week", "toISOWeek", []string{"wk", "ww"}},
	{"Month", "toMonth", []string{"mm", "m"}},
	{"Quarter", "toQuarter", []string{"qq", "q"}},
	{"Year", "toYear", []string{"yyyy", "yy"}},
}

// unitOf gives the unit that a word names, or nil.
func unitOf(word string) *unit {
	word = strings.ToLower(word)
	for i := range units {
		name := strings.ToLower(units[i].name)
		if word == name || word == name+"s" || word == "sql_tsi_"+name || slices.Contains(units[i].spellings, word) {
			return &units[i]
		}
	}
	return nil
}

func (p *parser) unit() *unit {
	if t := p.peek(); t.kind == word {
		if u := unitOf(t.value); u != nil {
			p.next()
			return u
		}
	}
	p.fail("expected a unit of time, found %s", p.peek())
	return &units[0]
}

// interval is INTERVAL 1 DAY or INTERVAL '1 day 2 hours': calls of toInterval.
func (p *parser) interval() Expr {
	pos := p.peek().from
	p.expect("INTERVAL")
	if t := p.peek(); t.kind == text {
		if parts := intervalParts(pos, t.value); len(parts) == 1 {
			p.next()
			return parts[0]
		} else if len(parts) > 1 {
			p.next()
			return &Tuple{Items: parts}
		}
	}
	x := p.expression(weakest)
	return intervalCall(pos, p.unit(), x)
}

func intervalCall(pos int, u *unit, x Expr) Expr {
	return &Call{Pos: pos, Name: "toInterval" + u.name, Args: []Expr{x}}
}

// intervalParts reads "1 day 2 hours"; nil if s is something else.
func intervalParts(pos int, s string) []Expr {
	tokens, err := cutAll(s)
	if err != nil {
		return nil
	}
	var parts []Expr
	for i := 0; i+2 < len(tokens); i += 2 {
		u := unitOf(tokens[i+1].value)
		if tokens[i].kind != number || u == nil {
			return nil
		}
		parts = append(parts, intervalCall(pos, u, &Literal{Form: Number, Value: tokens[i].value}))
	}
	if len(tokens)%2 == 0 {
		return nil
	}
	return parts
}

// extract is EXTRACT(unit FROM x), or the function of regular expressions.
func (p *parser) extract(pos int) Expr {
	if !p.ahead(1).is("FROM") || p.peek().kind != word {
		return p.plainCall(pos, "extract")
	}
	part := p.next().value
	p.expect("FROM")
	return p.datePartOf(pos, part)
}

// datePart is date_part('unit', x), which is EXTRACT(unit FROM x).
func (p *parser) datePart(pos int) Expr {
	if p.peek().kind != text {
		p.fail("expected a unit of time as a string, found %s", p.peek())
	}
	part := p.next().value
	p.expectSymbol(",")
	return p.datePartOf(pos, part)
}

// datePartOf reads x and the bracket, and gives the function of the unit.
func (p *parser) datePartOf(pos int, part string) Expr {
	x := p.item(false)
	p.expectSymbol(")")
	call := func(name string, args ...Expr) Expr { return &Call{Pos: pos, Name: name, Args: args} }
	whole := func(n string) Expr { return &Literal{Form: Number, Value: n} }
	ages := func(years string) Expr { // the first one begins with year 1
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
	p.fail("%s is no unit of time", short(part))
	return x
}

// dateAdd is DATE_ADD(unit, n, date) or DATE_ADD(x, y).
func (p *parser) dateAdd(pos int, name string) Expr {
	if u := p.leadingUnit(); u != nil {
		n := p.item(false)
		p.expectSymbol(",")
		c := &Call{Pos: pos, Name: name, Args: []Expr{p.item(false), intervalCall(pos, u, n)}}
		p.expectSymbol(")")
		return c
	}
	return p.plainCall(pos, name)
}

// dateDiff is dateDiff('unit', a, b), where the unit may stand bare.
func (p *parser) dateDiff(pos int) Expr {
	u := p.leadingUnit()
	c := &Call{Pos: pos, Name: "dateDiff", Args: p.arguments()}
	if u != nil {
		c.Args = append([]Expr{&Literal{Form: Text, Value: strings.ToLower(u.name)}}, c.Args...)
	}
	return c
}

// leadingUnit passes a unit and its comma.
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

// caseOf is CASE [x] WHEN ... THEN ... [ELSE ...] END.
func (p *parser) caseOf() Expr {
	defer p.enter()()
	p.expect("CASE")
	c := &Case{}
	if !p.follows("WHEN") {
		c.X = p.item(false)
	}
	for p.accept("WHEN") {
		w := When{If: p.item(false)}
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
