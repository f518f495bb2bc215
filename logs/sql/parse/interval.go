package parse

import (
	"slices"
	"strings"

	"sandbox/logs/sql/ast"
)

// A unit is a unit of time with its spellings, and the function that EXTRACT
// becomes for it.
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

// unitOf returns the unit that a word names, or nil.
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
func (p *parser) interval() ast.Expr {
	pos := p.peek().from
	p.expect("INTERVAL")
	if t := p.peek(); t.kind == text {
		parts := intervalParts(pos, t.value)
		if p.ahead(2).is("TO") {
			p.next()
			parts = p.intervalFields(pos, t.value)
		} else if parts != nil {
			p.next()
		}
		switch len(parts) {
		case 0:
		case 1:
			return parts[0]
		default:
			return &ast.Tuple{Items: parts}
		}
	}
	x := p.expression(lowest)
	return intervalCall(pos, p.unit(), x)
}

func intervalCall(pos int, u *unit, x ast.Expr) ast.Expr {
	return &ast.Call{Pos: pos, Name: "toInterval" + u.name, Args: []ast.Expr{x}}
}

// intervalParts reads "1 day 2 hours"; nil if s is something else.
func intervalParts(pos int, s string) []ast.Expr {
	tokens, err := cutAll(s)
	if err != nil {
		return nil
	}
	var parts []ast.Expr
	for i := 0; i+2 < len(tokens); i += 2 {
		u := unitOf(tokens[i+1].value)
		if tokens[i].kind != number || u == nil {
			return nil
		}
		parts = append(parts, intervalCall(pos, u, &ast.Literal{Form: ast.Number, Value: tokens[i].value}))
	}
	if len(tokens)%2 == 0 {
		return nil
	}
	return parts
}

// intervalFields reads the units of INTERVAL '5 12:30' DAY TO MINUTE, and the
// fields of its string. A sign before the first field holds for all.
func (p *parser) intervalFields(pos int, s string) []ast.Expr {
	first := p.unit()
	p.expect("TO")
	last := p.unit()
	sign := s != "" && s[0] == '-'
	if sign || s != "" && s[0] == '+' {
		s = s[1:]
	}
	var parts []ast.Expr
	for _, f := range fieldsBetween(first, last) {
		n := len(s) - len(strings.TrimLeft(s, "0123456789"))
		part := intervalCall(pos, f.unit, &ast.Literal{Form: ast.Number, Value: s[:n]})
		if sign {
			part = &ast.Call{Pos: pos, Name: "negate", Args: []ast.Expr{part}}
		}
		if f.unit == last && n == len(s) && n > 0 {
			return append(parts, part)
		}
		if n == 0 || n == len(s) || s[n] != f.end {
			break
		}
		parts = append(parts, part)
		s = s[n+1:]
	}
	p.fail("there is no interval %s TO %s", first.name, last.name)
	return nil
}

// A field is one unit of an interval, and the character between it and the next.
type field struct {
	unit *unit
	end  byte
}

// fieldsBetween returns the fields from one unit to the other, or none.
func fieldsBetween(first, last *unit) []field {
	for _, group := range [][]field{
		{{unitOf("year"), '-'}, {unitOf("month"), 0}},
		{{unitOf("day"), ' '}, {unitOf("hour"), ':'}, {unitOf("minute"), ':'}, {unitOf("second"), 0}},
	} {
		from := slices.IndexFunc(group, func(f field) bool { return f.unit == first })
		to := slices.IndexFunc(group, func(f field) bool { return f.unit == last })
		if from >= 0 && to > from {
			return group[from : to+1]
		}
	}
	return nil
}
