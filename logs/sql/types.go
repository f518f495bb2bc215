package sql

import "strings"

// wordyTypes are the types whose names have several words.
var wordyTypes = []string{
	"NATIONAL CHARACTER LARGE OBJECT", "NATIONAL CHARACTER VARYING", "NATIONAL CHARACTER", "NATIONAL CHAR VARYING", "NATIONAL CHAR",
	"NCHAR LARGE OBJECT", "NCHAR VARYING", "CHARACTER LARGE OBJECT", "CHARACTER VARYING", "CHAR LARGE OBJECT", "CHAR VARYING",
	"BINARY LARGE OBJECT", "BINARY VARYING", "DOUBLE PRECISION",
	"TINYINT SIGNED", "TINYINT UNSIGNED", "INT1 SIGNED", "INT1 UNSIGNED", "SMALLINT SIGNED", "SMALLINT UNSIGNED",
	"MEDIUMINT SIGNED", "MEDIUMINT UNSIGNED", "INTEGER SIGNED", "INTEGER UNSIGNED", "INT SIGNED", "INT UNSIGNED",
	"BIGINT SIGNED", "BIGINT UNSIGNED",
}

// dataType is a type with its arguments.
func (p *parser) dataType() *Type {
	defer p.enter()()
	t := &Type{Pos: p.peek().from}
	if p.peek().kind != word {
		p.fail("expected a type, found %s", p.peek())
	}
	t.Name = p.typeName()
	if p.acceptSymbol("(") {
		if !p.peek().isSymbol(")") {
			t.Args = list(p, p.typeArg)
		}
		p.expectSymbol(")")
	}
	return t
}

func (p *parser) typeName() string {
	for _, name := range wordyTypes {
		if p.accept(strings.Fields(name)...) {
			return name
		}
	}
	return p.name("a type")
}

// typeArg is a literal, a named element, or a type.
func (p *parser) typeArg() TypeArg {
	t := p.peek()
	switch {
	case t.kind == text:
		a := TypeArg{Literal: &Literal{Form: Text, Value: p.next().value}}
		if p.acceptSymbol("=") {
			a.Value = p.typeNumber()
		}
		return a
	case t.kind == number, t.isSymbol("-"):
		return TypeArg{Literal: p.typeNumber()}
	case t.kind == quoted:
		return TypeArg{Name: p.name("an element"), Type: p.dataType()}
	case p.ahead(1).isSymbol("="):
		name := p.name("a name")
		p.expectSymbol("=")
		return TypeArg{Name: name, Value: p.typeNumber()}
	case p.ahead(1).kind == word && !p.startsWordyType():
		return TypeArg{Name: p.name("an element"), Type: p.dataType()}
	default:
		return TypeArg{Type: p.dataType()}
	}
}

func (p *parser) startsWordyType() bool {
	for _, name := range wordyTypes {
		if p.follows(strings.Fields(name)...) {
			return true
		}
	}
	return false
}

func (p *parser) typeNumber() *Literal {
	sign := ""
	if p.acceptSymbol("-") {
		sign = "-"
	}
	return &Literal{Form: Number, Value: sign + p.numberText()}
}

// odd is what no string with a part of the grammar may have: comments, escapes
// and further quotes. The engine is sent that string as it is, so there must be
// but one way to read it.
var odd = []string{"#", "--", "//", "/*", "$", `\`, "`", `"`, "‘", "’", "“", "”"}

// parseText reads the whole of s, a string of the statement, as one part of
// the grammar.
func parseText[T any](s string, part func(*parser) T) (T, *Error) {
	var none T
	for _, o := range odd {
		if at := strings.Index(s, o); at >= 0 {
			return none, errorAt(s, at, "unexpected %s", o)
		}
	}
	tokens, err := cutAll(s)
	if err != nil {
		return none, err
	}
	p := &parser{source: s, tokens: tokens, steps: 1000 + stepsPerToken*len(tokens)}
	result := part(p)
	if p.peek().kind != end {
		p.fail("unexpected %s", p.peek())
	}
	if p.err != nil {
		return none, p.err
	}
	return result, nil
}
