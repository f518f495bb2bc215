package print

import (
	"strings"

	"sandbox/logs/sql/ast"
)

func (w *printer) star(s *ast.Star) {
	for _, part := range s.Of {
		w.put(ast.QuoteName(part), ".")
	}
	switch {
	case !s.Columns:
		w.put("*")
	case s.List != nil:
		w.put("COLUMNS(")
		w.items(s.List)
		w.put(")")
	default:
		w.put("COLUMNS(", ast.QuoteText(s.Pattern), ")")
	}
	for i := range s.Transformers {
		w.transformer(&s.Transformers[i])
	}
}

func (w *printer) transformer(t *ast.Transformer) {
	w.put(" ", t.Kind)
	w.flag(t.Strict, " STRICT")
	w.put("(")
	switch {
	case t.Kind == "APPLY":
		w.applied(t.Func)
		w.flag(t.Prefix != "", ", "+ast.QuoteText(t.Prefix))
	case t.Names != nil:
		w.names(t.Names)
	case t.Items != nil:
		w.items(t.Items)
	default:
		w.put(ast.QuoteText(t.Pattern))
	}
	w.put(")")
}

// applied is a lambda, or a function without its arguments.
func (w *printer) applied(f ast.Expr) {
	c, ok := f.(*ast.Call)
	if !ok {
		w.expression(f)
		return
	}
	w.put(functionName(c.Name))
	if c.Parametric {
		w.put("(")
		w.items(c.Params)
		w.put(")")
	}
}

func (w *printer) call(c *ast.Call) {
	w.put(functionName(c.Name), "(")
	if c.Parametric {
		w.items(c.Params)
		w.put(")(")
	}
	w.flag(c.Distinct, "DISTINCT ")
	if ast.CallForm(c.Name) != "" {
		several(w, c.Args, w.operand) // in brackets: a word in them could be one of the form's
	} else {
		w.items(c.Args)
	}
	w.put(")")
	if c.Filter != nil {
		w.clause(" FILTER(WHERE ", c.Filter)
		w.put(")")
	}
	w.flag(c.Nulls != "", " "+c.Nulls+" NULLS")
	w.flag(c.OverName != "", " OVER "+ast.QuoteName(c.OverName))
	if c.Over != nil {
		w.put(" OVER ")
		w.window(c.Over)
	}
}

// functionName returns a plain name without quotes, because the engine names
// columns by what it reads here.
func functionName(name string) string {
	if ast.IsPlain(name) && !isReserved(name) {
		return name
	}
	return ast.QuoteName(name)
}

// isReserved reports whether a word means something else than a function before a
// bracket.
func isReserved(name string) bool {
	switch strings.ToUpper(name) {
	case "NOT", "INTERVAL", "CASE", "COLUMNS", "SELECT", "WITH", "FROM", "DISTINCT", "ALL", "TOP", "ROLLUP", "CUBE":
		return true
	default:
		return false
	}
}

// isQuantifier reports whether a word means something else than a function behind a
// comparison.
func isQuantifier(name string) bool {
	switch strings.ToUpper(name) {
	case "ANY", "ALL", "SOME":
		return true
	default:
		return false
	}
}
