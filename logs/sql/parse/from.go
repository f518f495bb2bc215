package parse

import (
	"slices"

	"sandbox/logs/sql/ast"
)

// from is the tables of a SELECT. Where they stand before the selection (selected
// is false), the word SELECT behind a table is not its alias.
func (p *parser) from(selected bool) *ast.From {
	f := &ast.From{First: p.table(selected)}
	for {
		j, ok := p.join(selected)
		if !ok {
			break
		}
		f.Joins = append(f.Joins, j)
	}
	return f
}

func (p *parser) join(selected bool) (ast.Join, bool) {
	if p.acceptSymbol(",") {
		return ast.Join{Kind: ",", Table: p.table(selected)}, true
	}
	if j, ok := p.arrayJoin(); ok {
		return j, true
	}
	j, ok := p.joinWords()
	if !ok {
		return j, false
	}
	j.Table = p.table(selected)
	p.joinCondition(&j)
	return j, true
}

func (p *parser) arrayJoin() (ast.Join, bool) {
	kind := ""
	switch {
	case p.accept("ARRAY", "JOIN"), p.accept("INNER", "ARRAY", "JOIN"):
		kind = "ARRAY"
	case p.accept("LEFT", "ARRAY", "JOIN"):
		kind = "LEFT ARRAY"
	default:
		return ast.Join{}, false
	}
	return ast.Join{Kind: kind, Arrays: p.items()}, true
}

var strictnesses = []string{"ANY", "ALL", "ASOF", "SEMI", "ANTI"}

// joinWords are GLOBAL, strictness and kind in the orders that are allowed,
// and JOIN. What a setting of the engine would choose is filled in.
func (p *parser) joinWords() (j ast.Join, ok bool) {
	at := p.at
	j.Natural = p.accept("NATURAL")
	j.Global = p.accept("GLOBAL")
	if !j.Global {
		p.accept("LOCAL")
	}
	j.Strictness = p.acceptAny(strictnesses...)
	j.Kind = p.acceptAny("INNER", "LEFT", "RIGHT", "FULL", "CROSS", "PASTE")
	if j.Kind == "LEFT" || j.Kind == "RIGHT" || j.Kind == "FULL" {
		p.accept("OUTER")
	}
	if j.Strictness == "" {
		j.Strictness = p.acceptAny(strictnesses...)
	}
	if !p.accept("JOIN") {
		if p.at != at {
			p.fail("expected JOIN, found %s", p.peek())
		}
		return j, false
	}
	p.defaultJoin(&j)
	return j, true
}

// defaultJoin fills in the strictness and the kind that are not written.
func (p *parser) defaultJoin(j *ast.Join) {
	switch {
	case j.Kind == "CROSS", j.Kind == "PASTE", j.Natural:
		if j.Strictness != "" {
			p.fail("this JOIN takes no %s", j.Strictness)
		}
	case j.Strictness == "":
		j.Strictness = "ALL"
	}
	if j.Kind != "" {
		return
	}
	j.Kind = "INNER"
	if j.Strictness == "SEMI" || j.Strictness == "ANTI" {
		j.Kind = "LEFT"
	}
}

func (p *parser) joinCondition(j *ast.Join) {
	switch {
	case j.Kind == "CROSS", j.Kind == "PASTE", j.Natural:
	case p.accept("ON"):
		j.On = p.item(false)
	case p.accept("USING"):
		bracket := p.acceptSymbol("(")
		j.Using = p.items()
		if bracket {
			p.expectSymbol(")")
		}
	default:
		p.fail("expected ON or USING, found %s", p.peek())
	}
}

// table is a name, a subquery or a table function, with its alias.
func (p *parser) table(selected bool) *ast.Table {
	defer p.enter()()
	t := &ast.Table{Pos: p.peek().from}
	switch {
	case p.peek().isSymbol("("):
		t.Query = p.bracketedQuery()
	case p.peek().isSymbol("{"):
		p.fail("a placeholder cannot name a table")
	case p.ahead(1).isSymbol("("):
		t.Func = p.tableFunction()
	default:
		p.tableName(t)
	}
	t.Final = p.accept("FINAL")
	if t.Alias = p.tableAlias(selected); t.Alias != "" && p.acceptSymbol("(") {
		t.Columns = p.names("a column name")
		p.expectSymbol(")")
	}
	t.Final = p.accept("FINAL") || t.Final
	if p.accept("SAMPLE") {
		t.Sample = p.ratio()
		if p.accept("OFFSET") {
			t.SampleOffset = p.ratio()
		}
	}
	return t
}

func (p *parser) tableName(t *ast.Table) {
	t.Name = p.name("a table")
	if p.acceptSymbol(".") {
		t.Database, t.Name = t.Name, p.name("a table")
	}
	if p.peek().isSymbol(".") {
		p.fail("a table has one database at most")
	}
}

func (p *parser) tableFunction() *ast.Call {
	c := &ast.Call{Pos: p.peek().from, Name: p.name("a table function")}
	p.expectSymbol("(")
	c.Args = p.arguments()
	return c
}

func (p *parser) tableAlias(selected bool) string {
	if p.accept("AS") {
		return p.name("an alias")
	}
	if t := p.peek(); p.isBareAlias(t) && (selected || !t.is("SELECT")) {
		return p.next().value
	}
	return ""
}

// ratio is a number or a fraction.
func (p *parser) ratio() string {
	r := p.numberText()
	if p.acceptSymbol("/") {
		r += " / " + p.numberText()
	}
	return r
}

func (p *parser) numberText() string {
	if p.peek().kind != number {
		p.fail("expected a number, found %s", p.peek())
	}
	return p.next().value
}

// notAliases are the words that can be an alias only behind AS.
var notAliases = []string{
	"ALL", "ANTI", "ANY", "ARRAY", "AS", "ASOF", "BETWEEN", "CROSS", "ELSE", "EXCEPT", "FETCH", "FINAL", "FORMAT", "FROM",
	"FULL", "GLOBAL", "GROUP", "HAVING", "ILIKE", "INNER", "INTERSECT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT",
	"LOCAL", "NATURAL", "NOT", "OFFSET", "ON", "ORDER", "PASTE", "PREWHERE", "QUALIFY", "RIGHT", "SAMPLE", "SEMI", "SETTINGS",
	"UNION", "USING", "WHERE", "WINDOW", "WITH",
}

// isBareAlias reports whether t, after an expression or a table, names it.
func (p *parser) isBareAlias(t token) bool {
	if t.kind == quoted {
		return t.value != ""
	}
	return t.kind == word && !isOperator(t) && !slices.ContainsFunc(notAliases, t.is)
}
