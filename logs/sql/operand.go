package sql

import (
	"slices"
	"strings"
)

// operand is what stands between operators.
func (p *parser) operand() Expr {
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
		return &Tuple{}
	}
}

func (p *parser) symbolOperand() Expr {
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
		return p.transformed(&Star{})
	default:
		p.fail("expected an expression, found %s", t)
		return &Tuple{}
	}
}

// negative is a negative number or a minus before an operand.
func (p *parser) negative() Expr {
	p.next()
	if t := p.peek(); t.kind == number || isFloatWord(t) && !p.ahead(1).isSymbol("(") {
		return p.literal("-")
	}
	return &Unary{Op: "-", X: p.expression(strengthNegate)}
}

// literal is a number or a string. Cast by ::, its text is what is cast.
func (p *parser) literal(sign string) Expr {
	t := p.next()
	switch {
	case t.kind == text:
		return p.castText(&Literal{Form: Text, Value: t.value}, t.value)
	case t.kind == number:
		value := sign + t.value
		return p.castText(&Literal{Form: Number, Value: value}, value)
	case isFloatWord(t):
		return &Literal{Form: Number, Value: sign + t.value}
	default:
		return keywordLiteral(t.value)
	}
}

// castText makes CAST('text', 'T') of a literal before ::, as the engine does:
// so no digit of a number is lost.
func (p *parser) castText(x Expr, value string) Expr {
	if !p.acceptSymbol("::") {
		return x
	}
	return &Cast{X: &Literal{Form: Text, Value: value}, Type: p.dataType()}
}

func keywordLiteral(word string) *Literal {
	word = strings.ToLower(word)
	if word == "null" {
		word = "NULL"
	}
	return &Literal{Form: Keyword, Value: word}
}

func isFloatWord(t token) bool { return t.is("inf") || t.is("infinity") || t.is("nan") }

// bracket is a query, a tuple, or brackets around an operand.
func (p *parser) bracket() Expr {
	var fault *Error
	if p.startsQuery() {
		var s *Subquery
		ok, err := p.try(func() { s = &Subquery{Query: p.bracketedQuery()} })
		if ok {
			return s
		}
		fault = err
	}
	x := p.tuple()
	if p.err != nil && fault != nil && fault.Offset >= p.err.Offset {
		p.err = fault
	}
	return x
}

func (p *parser) tuple() Expr {
	from := p.at
	p.expectSymbol("(")
	t := &Tuple{}
	comma := false
	for !p.peek().isSymbol(")") {
		t.Items = append(t.Items, p.item(false))
		comma = p.acceptSymbol(",")
		if !comma {
			break
		}
	}
	p.expectSymbol(")")
	if len(t.Items) != 1 || comma {
		return p.castCollection(t, from)
	}
	switch x := t.Items[0].(type) {
	case *Literal, *Tuple, *Array, *Paren:
		return &Paren{X: x}
	case *Name:
		if p.peek().isSymbol(".") || p.peek().isSymbol("->") {
			return p.bracketedName(x)
		}
		return x
	default:
		return x
	}
}

// bracketedName keeps (a).b apart from a.b, and (x) -> y for x -> y.
func (p *parser) bracketedName(x *Name) Expr {
	if p.peek().isSymbol("->") {
		return x
	}
	p.expectSymbol(".")
	return p.member(x)
}

func (p *parser) array() Expr {
	from := p.at
	p.expectSymbol("[")
	a := &Array{}
	for !p.peek().isSymbol("]") {
		a.Items = append(a.Items, p.item(false))
		if !p.acceptSymbol(",") {
			break
		}
	}
	p.expectSymbol("]")
	return p.castCollection(a, from)
}

// castCollection casts the very text of a tuple or array of literals.
func (p *parser) castCollection(x Expr, from int) Expr {
	if p.err != nil || !p.peek().isSymbol("::") || !isConstant(x) {
		return x
	}
	return p.castText(x, p.source[p.tokens[from].from:p.tokens[p.at-1].to])
}

// isConstant reports literals, and tuples and arrays of them.
func isConstant(x Expr) bool {
	switch x := x.(type) {
	case *Literal:
		return true
	case *Tuple:
		return !slices.ContainsFunc(x.Items, isVariable)
	case *Array:
		return !slices.ContainsFunc(x.Items, isVariable)
	case *Paren:
		return isConstant(x.X)
	default:
		return false
	}
}

func isVariable(x Expr) bool { return !isConstant(x) }

// placeholder is {name:Type}.
func (p *parser) placeholder() Expr {
	h := &Placeholder{Pos: p.peek().from}
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
func (p *parser) wordOperand() Expr {
	t, after := p.peek(), p.ahead(1)
	switch {
	case t.is("NOT") && !after.isSymbol(",") && !after.isSymbol(".") && !after.isSymbol(")") && after.kind != end:
		p.next()
		return &Unary{Op: "NOT", X: p.expression(strengthNot)}
	case after.isSymbol("("):
		return p.wordBracket()
	case after.isSymbol("."):
		return p.named()
	case t.is("NULL"), t.is("TRUE"), t.is("FALSE"), isFloatWord(t):
		return p.literal("")
	case after.kind == text && t.is("DATE"):
		p.next()
		return &Call{Pos: t.from, Name: "toDate", Args: []Expr{p.textLiteral()}}
	case after.kind == text && t.is("TIMESTAMP"):
		p.next()
		return &Call{Pos: t.from, Name: "toDateTime", Args: []Expr{p.textLiteral()}}
	case t.is("INTERVAL"):
		return p.either(p.interval, p.named)
	case t.is("CASE"):
		return p.either(p.caseOf, p.named)
	default:
		return p.named()
	}
}

// wordBracket is a word before a bracket: mostly a function.
func (p *parser) wordBracket() Expr {
	switch t := p.peek(); {
	case t.is("INTERVAL"):
		return p.either(p.interval, p.named)
	case t.is("CASE"):
		return p.either(p.caseOf, p.named)
	case t.is("COLUMNS"):
		return p.either(func() Expr { return p.columns(nil) }, p.named)
	default:
		return p.named()
	}
}

func (p *parser) textLiteral() Expr { return &Literal{Form: Text, Value: p.next().value} }

// either tries a form that begins with a word that may also be a name.
func (p *parser) either(form, name func() Expr) Expr {
	var x Expr
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
