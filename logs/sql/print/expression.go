package print

import "sandbox/logs/sql/ast"

// item writes an expression where an alias may follow.
func (w *printer) item(x ast.Expr) {
	if a, ok := x.(*ast.Alias); ok {
		w.expression(a.X)
		w.put(" AS ", ast.QuoteName(a.Name))
		return
	}
	w.expression(x)
}

// operand writes an expression beside an operator: in brackets, unless it
// holds together by itself.
func (w *printer) operand(x ast.Expr) {
	if isCompound(x) {
		w.put("(")
		w.item(x)
		w.put(")")
		return
	}
	w.expression(x)
}

func isCompound(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Unary, *ast.Binary, *ast.Chain, *ast.NullTest, *ast.Between, *ast.Ternary, *ast.Lambda, *ast.Case, *ast.Alias, *ast.Star:
		return true
	case *ast.Call: // it ends with a bare word, or begins with one that may be a quantifier
		return x.Over != nil || x.OverName != "" || x.Nulls != "" || x.Filter != nil || isQuantifier(x.Name)
	default:
		return false
	}
}

func (w *printer) expression(x ast.Expr) {
	switch x := x.(type) {
	case *ast.Literal:
		w.put(x.String())
	case *ast.Name:
		w.name(x)
	case *ast.Placeholder:
		w.put("{", x.Name, ":", x.Type.String(), "}")
	case *ast.Star:
		w.star(x)
	case *ast.Call:
		w.call(x)
	case *ast.Lambda:
		w.lambda(x)
	case *ast.Cast:
		w.put("CAST(")
		w.operand(x.X)
		w.put(" AS ", x.Type.String(), ")")
	case *ast.Index:
		w.operand(x.X)
		w.put("[")
		w.item(x.I)
		w.put("]")
	case *ast.Member:
		w.member(x)
	case *ast.Case:
		w.caseOf(x)
	case *ast.Tuple:
		w.tuple(x)
	case *ast.Array:
		w.put("[")
		w.items(x.Items)
		w.put("]")
	case *ast.Paren:
		w.put("(")
		w.item(x.X)
		w.put(")")
	case *ast.Subquery:
		w.flag(x.Exists, "EXISTS")
		w.flag(x.Of != "", x.Of+" ")
		w.bracketed(x.Query)
	default:
		w.operator(x)
	}
}

func (w *printer) operator(x ast.Expr) {
	switch x := x.(type) {
	case *ast.Unary:
		w.put(x.Op, " ")
		w.operand(x.X)
	case *ast.Binary:
		w.operand(x.L)
		w.put(" ", x.Op, " ")
		w.operand(x.R)
	case *ast.Chain:
		for i, item := range x.Items {
			w.flag(i > 0, " "+x.Op+" ")
			w.operand(item)
		}
	case *ast.NullTest:
		w.operand(x.X)
		w.put(" IS")
		w.flag(x.Not, " NOT")
		w.put(" NULL")
	case *ast.Between:
		w.operand(x.X)
		w.flag(x.Not, " NOT")
		w.put(" BETWEEN ")
		w.operand(x.Low)
		w.put(" AND ")
		w.operand(x.High)
	case *ast.Ternary:
		w.operand(x.If)
		w.put(" ? ")
		w.operand(x.Then)
		w.put(" : ")
		w.operand(x.Else)
	case *ast.Alias:
		w.operand(x)
	}
}

func (w *printer) name(n *ast.Name) {
	for i, part := range n.Parts {
		w.flag(i > 0, ".")
		if part.Mark == ":" { // Name is a type, as (*ast.Type).String returns it
			w.put(":", part.Name)
			continue
		}
		w.put(part.Mark, ast.QuoteName(part.Name))
	}
}

// member puts its operand in brackets where the dot would be read otherwise: (a).b
// is not the column a.b, and behind a number the dot would be a part of it.
func (w *printer) member(m *ast.Member) {
	bracket := true
	switch x := m.X.(type) {
	case *ast.Name:
		bracket = !m.Numeric
	case *ast.Call, *ast.Index, *ast.Member, *ast.Tuple, *ast.Array, *ast.Paren, *ast.Subquery, *ast.Cast:
		bracket = isCompound(x)
	}
	w.flag(bracket, "(")
	w.item(m.X)
	w.flag(bracket, ")")
	if m.Numeric {
		w.put(".", m.Name)
	} else {
		w.put(".", ast.QuoteName(m.Name))
	}
}

func (w *printer) tuple(t *ast.Tuple) {
	w.put("(")
	w.items(t.Items)
	w.flag(len(t.Items) == 1, ",")
	w.put(")")
}

func (w *printer) lambda(l *ast.Lambda) {
	w.flag(len(l.Params) > 1, "(")
	w.names(l.Params)
	w.flag(len(l.Params) > 1, ")")
	w.put(" -> ")
	w.operand(l.Body)
}

func (w *printer) caseOf(c *ast.Case) {
	w.put("CASE")
	w.clause(" ", c.X)
	for _, when := range c.Whens {
		w.clause(" WHEN ", when.If)
		w.clause(" THEN ", when.Then)
	}
	w.clause(" ELSE ", c.Else)
	w.put(" END")
}
