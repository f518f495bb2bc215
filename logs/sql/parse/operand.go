package parse

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// operand is what operators stand between.
func (p *parser) operand() ast.Expr {
	for p.acceptSymbol("+") { // a leading plus means nothing
	}
	switch t := p.peek(); t.kind {
	case symbol:
		return p.symbolOperand()
	case number, text:
		return p.literal("")
	case quoted:
		return p.named()
	case word:
		return p.wordOperand()
	default:
		p.fail("expected an expression, found %s", t)
		return &ast.Tuple{}
	}
}

func (p *parser) symbolOperand() ast.Expr {
	switch t := p.peek(); t.value {
	case "-", "−":
		return p.negative()
	case "(":
		return p.bracket()
	case "[":
		return p.array()
	case "{":
		return p.placeholder()
	case "*":
		p.next()
		return p.transformed(&ast.Star{})
	default:
		p.fail("expected an expression, found %s", t)
		return &ast.Tuple{}
	}
}

// negative is a negative number or a minus before an operand.
func (p *parser) negative() ast.Expr {
	p.next()
	if t := p.peek(); t.kind == number || isFloatWord(t) && !p.ahead(1).isSymbol("(") {
		return p.literal("-")
	}
	return &ast.Unary{Op: "-", X: p.expression(precedenceNegate)}
}

// literal is a number, a string or a keyword such as NULL; its sign has been
// passed. Where :: follows a number or a string, its text is cast.
func (p *parser) literal(sign string) ast.Expr {
	from := p.at - len(sign)
	t := p.next()
	switch {
	case t.kind == text:
		return p.castText(&ast.Literal{Form: ast.Text, Value: t.value}, t.value)
	case t.kind == number:
		return p.castCollection(&ast.Literal{Form: ast.Number, Value: sign + t.value}, from)
	case isFloatWord(t):
		return &ast.Literal{Form: ast.Number, Value: sign + t.value}
	default:
		return keywordLiteral(t.value)
	}
}

// castText makes CAST('text' AS T) of x::T, where value is the text of x. The
// engine does the same, so that no digit of a number is lost.
func (p *parser) castText(x ast.Expr, value string) ast.Expr {
	if !p.acceptSymbol("::") {
		return x
	}
	return &ast.Cast{X: &ast.Literal{Form: ast.Text, Value: value}, Type: p.dataType()}
}

func keywordLiteral(word string) *ast.Literal {
	word = strings.ToLower(word)
	if word == "null" {
		word = "NULL"
	}
	return &ast.Literal{Form: ast.Keyword, Value: word}
}

func isFloatWord(t token) bool { return t.is("inf") || t.is("infinity") || t.is("nan") }

// placeholder is {name:Type}.
func (p *parser) placeholder() ast.Expr {
	h := &ast.Placeholder{Pos: p.peek().from}
	p.expectSymbol("{")
	if p.peek().kind != word {
		p.fail("expected the name of a placeholder, found %s", p.peek())
	}
	h.Name = p.name("the name of a placeholder")
	p.expectSymbol(":")
	h.Type = p.dataType()
	p.expectSymbol("}")
	return h
}

// wordOperand is an operator or form that begins with a word, or a name.
func (p *parser) wordOperand() ast.Expr {
	t, after := p.peek(), p.ahead(1)
	switch {
	case t.is("NOT") && !after.isSymbol(",") && !after.isSymbol(".") && !after.isSymbol(")") && after.kind != end:
		p.next()
		return &ast.Unary{Op: "NOT", X: p.expression(precedenceNot)}
	case after.isSymbol("("):
		return p.wordBracket()
	case after.isSymbol("."):
		return p.named()
	case t.is("NULL"), t.is("TRUE"), t.is("FALSE"), isFloatWord(t):
		return p.literal("")
	case after.kind == text && t.is("DATE"):
		p.next()
		return &ast.Call{Pos: t.from, Name: "toDate", Args: []ast.Expr{p.textLiteral()}}
	case after.kind == text && t.is("TIMESTAMP"):
		p.next()
		return &ast.Call{Pos: t.from, Name: "toDateTime", Args: []ast.Expr{p.textLiteral()}}
	case t.is("INTERVAL"):
		return p.either(p.interval, p.named)
	case t.is("CASE"):
		return p.either(p.caseOf, p.named)
	default:
		return p.named()
	}
}

// wordBracket is a word before a bracket: mostly a function.
func (p *parser) wordBracket() ast.Expr {
	switch t := p.peek(); {
	case t.is("INTERVAL"):
		return p.either(p.interval, p.named)
	case t.is("CASE"):
		return p.either(p.caseOf, p.named)
	case t.is("COLUMNS"):
		return p.either(func() ast.Expr { return p.columns(nil) }, p.named)
	default:
		return p.named()
	}
}

func (p *parser) textLiteral() ast.Expr { return &ast.Literal{Form: ast.Text, Value: p.next().value} }

// either reads a form that begins with a keyword. If that fails, the keyword is
// taken for a name. If that fails too, the error is that of the reading which got
// further.
func (p *parser) either(form, name func() ast.Expr) ast.Expr {
	var x ast.Expr
	ok, fault := p.try(func() { x = form() })
	if ok {
		return x
	}
	x = name()
	if p.err != nil && fault != nil && fault.Offset >= p.err.Offset {
		p.err = fault
	}
	return x
}
