package sql

// item writes an expression where an alias may follow.
func (w *printer) item(x Expr) {
	if a, ok := x.(*Alias); ok {
		w.expression(a.X)
		w.put(" AS ", quoteName(a.Name))
		return
	}
	w.expression(x)
}

// operand writes an expression beside an operator: in brackets, unless it
// holds together by itself.
func (w *printer) operand(x Expr) {
	if isCompound(x) {
		w.put("(")
		w.item(x)
		w.put(")")
		return
	}
	w.expression(x)
}

func isCompound(x Expr) bool {
	switch x := x.(type) {
	case *Unary, *Binary, *Chain, *NullTest, *Between, *Ternary, *Lambda, *Case, *Alias, *Star:
		return true
	case *Call: // a bare name at its end, or a quantifier for its name
		return x.Over != nil || x.OverName != "" || x.Nulls != "" || x.Filter != nil || isQuantifier(x.Name)
	default:
		return false
	}
}

func (w *printer) expression(x Expr) {
	switch x := x.(type) {
	case *Literal:
		w.literal(x)
	case *Name:
		w.name(x)
	case *Placeholder:
		w.put("{", x.Name, ":", printType(x.Type), "}")
	case *Star:
		w.star(x)
	case *Call:
		w.call(x)
	case *Lambda:
		w.lambda(x)
	case *Cast:
		w.put("CAST(")
		w.operand(x.X)
		w.put(" AS ", printType(x.Type), ")")
	case *Index:
		w.operand(x.X)
		w.put("[")
		w.item(x.I)
		w.put("]")
	case *Member:
		w.member(x)
	case *Case:
		w.caseOf(x)
	case *Tuple:
		w.tuple(x)
	case *Array:
		w.put("[")
		w.items(x.Items)
		w.put("]")
	case *Paren:
		w.put("(")
		w.item(x.X)
		w.put(")")
	case *Subquery:
		w.flag(x.Exists, "EXISTS")
		w.flag(x.Of != "", x.Of+" ")
		w.bracketed(x.Query)
	default:
		w.operator(x)
	}
}

func (w *printer) operator(x Expr) {
	switch x := x.(type) {
	case *Unary:
		w.put(x.Op, " ")
		w.operand(x.X)
	case *Binary:
		w.operand(x.L)
		w.put(" ", x.Op, " ")
		w.operand(x.R)
	case *Chain:
		for i, item := range x.Items {
			w.flag(i > 0, " "+x.Op+" ")
			w.operand(item)
		}
	case *NullTest:
		w.operand(x.X)
		w.put(" IS")
		w.flag(x.Not, " NOT")
		w.put(" NULL")
	case *Between:
		w.operand(x.X)
		w.flag(x.Not, " NOT")
		w.put(" BETWEEN ")
		w.operand(x.Low)
		w.put(" AND ")
		w.operand(x.High)
	case *Ternary:
		w.operand(x.If)
		w.put(" ? ")
		w.operand(x.Then)
		w.put(" : ")
		w.operand(x.Else)
	case *Alias:
		w.operand(x)
	}
}

func (w *printer) literal(l *Literal) {
	if l.Form == Text {
		w.put(quoteText(l.Value))
		return
	}
	w.put(l.Value)
}

func (w *printer) name(n *Name) {
	for i, part := range n.Parts {
		w.flag(i > 0, ".")
		if part.Mark == ":" { // Name is a type as printType writes it
			w.put(":", part.Name)
			continue
		}
		w.put(part.Mark, quoteName(part.Name))
	}
}

// member keeps (a).b apart from a.b, and a dot off what would take it for a
// number's.
func (w *printer) member(m *Member) {
	bracket := true
	switch x := m.X.(type) {
	case *Name:
		bracket = !m.Numeric
	case *Call, *Index, *Member, *Tuple, *Array, *Paren, *Subquery, *Cast:
		bracket = isCompound(x)
	}
	w.flag(bracket, "(")
	w.item(m.X)
	w.flag(bracket, ")")
	if m.Numeric {
		w.put(".", m.Name)
	} else {
		w.put(".", quoteName(m.Name))
	}
}

func (w *printer) tuple(t *Tuple) {
	w.put("(")
	w.items(t.Items)
	w.flag(len(t.Items) == 1, ",")
	w.put(")")
}

func (w *printer) lambda(l *Lambda) {
	w.flag(len(l.Params) > 1, "(")
	w.names(l.Params)
	w.flag(len(l.Params) > 1, ")")
	w.put(" -> ")
	w.operand(l.Body)
}

func (w *printer) caseOf(c *Case) {
	w.put("CASE")
	w.clause(" ", c.X)
	for _, when := range c.Whens {
		w.clause(" WHEN ", when.If)
		w.clause(" THEN ", when.Then)
	}
	w.clause(" ELSE ", c.Else)
	w.put(" END")
}
