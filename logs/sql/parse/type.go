package parse

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// dataType is a type with its arguments.
func (p *parser) dataType() *ast.Type {
	defer p.enter()()
	t := &ast.Type{Pos: p.peek().from}
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
	for _, name := range ast.WordyTypes {
		if p.accept(strings.Fields(name)...) {
			return name
		}
	}
	return p.name("a type")
}

// typeArg is a literal, a named element, or a type.
func (p *parser) typeArg() ast.TypeArg {
	t := p.peek()
	switch {
	case t.kind == text:
		a := ast.TypeArg{Literal: &ast.Literal{Form: ast.Text, Value: p.next().value}}
		if p.acceptSymbol("=") {
			a.Value = p.typeNumber()
		}
		return a
	case t.kind == number, t.isSymbol("-"):
		return ast.TypeArg{Literal: p.typeNumber()}
	case t.kind == quoted:
		return ast.TypeArg{Name: p.name("an element"), Type: p.dataType()}
	case p.ahead(1).isSymbol("="):
		name := p.name("a name")
		p.expectSymbol("=")
		return ast.TypeArg{Name: name, Value: p.typeNumber()}
	case p.ahead(1).kind == word && !p.startsWordyType():
		return ast.TypeArg{Name: p.name("an element"), Type: p.dataType()}
	default:
		return ast.TypeArg{Type: p.dataType()}
	}
}

func (p *parser) startsWordyType() bool {
	for _, name := range ast.WordyTypes {
		if p.follows(strings.Fields(name)...) {
			return true
		}
	}
	return false
}

func (p *parser) typeNumber() *ast.Literal {
	sign := ""
	if p.acceptSymbol("-") {
		sign = "-"
	}
	return &ast.Literal{Form: ast.Number, Value: sign + p.numberText()}
}
