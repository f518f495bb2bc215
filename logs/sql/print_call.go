package sql

import (
	"slices"
	"strings"
)

func (w *printer) star(s *Star) {
	for _, part := range s.Of {
		w.put(quoteName(part), ".")
	}
	switch {
	case !s.Columns:
		w.put("*")
	case s.List != nil:
		w.put("COLUMNS(")
		w.items(s.List)
		w.put(")")
	default:
		w.put("COLUMNS(", quoteText(s.Pattern), ")")
	}
	for i := range s.Transformers {
		w.transformer(&s.Transformers[i])
	}
}

func (w *printer) transformer(t *Transformer) {
	w.put(" ", t.Kind)
	w.flag(t.Strict, " STRICT")
	w.put("(")
	switch {
	case t.Kind == "APPLY":
		w.applied(t.Func)
		w.flag(t.Prefix != "", ", "+quoteText(t.Prefix))
	case t.Names != nil:
		w.names(t.Names)
	case t.Items != nil:
		w.items(t.Items)
	default:
		w.put(quoteText(t.Pattern))
	}
	w.put(")")
}

// applied is a lambda, or a function without its arguments.
func (w *printer) applied(f Expr) {
	c, ok := f.(*Call)
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

func (w *printer) call(c *Call) {
	w.put(functionName(c.Name), "(")
	if c.Parametric {
		w.items(c.Params)
		w.put(")(")
	}
	w.flag(c.Distinct, "DISTINCT ")
	if callForms[strings.ToLower(c.Name)] != nil {
		several(w, c.Args, w.operand) // a word in them might be the form's
	} else {
		w.items(c.Args)
	}
	w.put(")")
	if c.Filter != nil {
		w.clause(" FILTER(WHERE ", c.Filter)
		w.put(")")
	}
	w.flag(c.Nulls != "", " "+c.Nulls+" NULLS")
	w.flag(c.OverName != "", " OVER "+quoteName(c.OverName))
	if c.Over != nil {
		w.put(" OVER ")
		w.window(c.Over)
	}
}

// functionName leaves plain names bare: the engine names columns by them.
func functionName(name string) string {
	if isPlain(name) && !isReserved(name) {
		return name
	}
	return quoteName(name)
}

func isPlain(name string) bool {
	return name != "" && !isDigit(name[0]) && !slices.ContainsFunc([]byte(name), func(c byte) bool { return !isWord(c) })
}

// isReserved reports the words that mean something else before a bracket.
func isReserved(name string) bool {
	switch strings.ToUpper(name) {
	case "NOT", "INTERVAL", "CASE", "COLUMNS", "SELECT", "WITH", "FROM", "DISTINCT", "ALL", "TOP", "ROLLUP", "CUBE":
		return true
	default:
		return false
	}
}

// isQuantifier reports the words that mean something else after a comparison.
func isQuantifier(name string) bool {
	switch strings.ToUpper(name) {
	case "ANY", "ALL", "SOME":
		return true
	default:
		return false
	}
}
