package parse

import "sandbox/logs/sql/ast"

// named is a column, a qualified star, or a function.
func (p *parser) named() ast.Expr {
	n := &ast.Name{Pos: p.peek().from, Parts: []ast.NamePart{{Name: p.name("an expression")}}}
	if p.peek().isSymbol("(") {
		return p.call(n.Pos, n.Parts[0].Name)
	}
	for p.peek().isSymbol(".") && p.err == nil {
		after := p.ahead(1)
		switch {
		case after.isSymbol("*"):
			p.expectSymbol(".")
			p.expectSymbol("*")
			return p.transformed(&ast.Star{Of: n.Names()})
		case after.is("COLUMNS") && p.ahead(2).isSymbol("("):
			p.expectSymbol(".")
			return p.columns(n.Names())
		case after.kind == number:
			return n // a member such as x.1, which operators reads
		case after.kind == word || after.kind == quoted:
			p.expectSymbol(".")
			n.Parts = append(n.Parts, ast.NamePart{Name: p.name("a name")})
		default:
			p.expectSymbol(".")
			n.Parts = append(n.Parts, p.pathPart())
		}
	}
	if p.peek().isSymbol("(") {
		p.fail("the name of a function has no dot")
	}
	return n
}

// pathPart is .^name or .:Type, of a column of type JSON.
func (p *parser) pathPart() ast.NamePart {
	switch {
	case p.acceptSymbol("^"):
		return ast.NamePart{Mark: "^", Name: p.name("a name")}
	case p.acceptSymbol(":"):
		if p.peek().kind == quoted {
			p.fail("expected a type, found %s", p.peek())
		}
		return ast.NamePart{Mark: ":", Name: p.dataType().String()}
	default:
		p.fail("expected a name after the dot, found %s", p.peek())
		return ast.NamePart{}
	}
}
