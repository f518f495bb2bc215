// Package print writes the tree of a statement as the text that an engine is
// sent: every name in quotes, every string escaped, brackets around every
// operand that has operators of its own. The text depends on nothing but the
// tree, and package parse reads the same tree from it.
package print

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// MaxLength is the longest text, in bytes, that an engine reads without being
// told to read more (max_query_size).
const MaxLength = 256 << 10

// Query returns the query as text.
func Query(q *ast.Query) string {
	var w printer
	w.query(q)
	return w.String()
}

// Expr returns an expression as text, without its alias.
func Expr(x ast.Expr) string {
	var w printer
	w.expression(x)
	return w.String()
}

// A printer writes a tree. Its methods are named for what they write.
type printer struct{ strings.Builder }

func (w *printer) put(parts ...string) {
	for _, s := range parts {
		w.WriteString(s)
	}
}

// clause writes words and an expression, if there is one.
func (w *printer) clause(words string, x ast.Expr) {
	if x != nil {
		w.put(words)
		w.item(x)
	}
}

// several writes elements with commas between them.
func several[T any](w *printer, all []T, element func(T)) {
	for i, x := range all {
		if i > 0 {
			w.put(", ")
		}
		element(x)
	}
}

func (w *printer) items(all []ast.Expr) { several(w, all, w.item) }

func (w *printer) names(all []string) {
	several(w, all, func(s string) { w.put(ast.QuoteName(s)) })
}

func (w *printer) query(q *ast.Query) {
	for _, part := range q.Parts {
		if part.Op != "" {
			w.put(" ", part.Op, " ")
		}
		if part.Nested != nil {
			w.bracketed(part.Nested)
		} else {
			w.selectQuery(part.Select)
		}
	}
}

func (w *printer) bracketed(q *ast.Query) {
	w.put("(")
	w.query(q)
	w.put(")")
}

func (w *printer) selectQuery(s *ast.Select) {
	w.with(s)
	w.put("SELECT ")
	if s.DistinctOn != nil {
		w.put("DISTINCT ON (")
		w.items(s.DistinctOn)
		w.put(") ")
	} else if s.Distinct {
		w.put("DISTINCT ")
	}
	w.items(s.Items)
	if s.From != nil {
		w.from(s.From)
	}
	w.clause(" PREWHERE ", s.Prewhere)
	w.clause(" WHERE ", s.Where)
	if s.GroupBy != nil {
		w.grouping(s.GroupBy)
	}
	w.clause(" HAVING ", s.Having)
	if s.Windows != nil {
		w.put(" WINDOW ")
		several(w, s.Windows, func(n ast.NamedWindow) {
			w.put(ast.QuoteName(n.Name), " AS ")
			w.window(n.Window)
		})
	}
	w.clause(" QUALIFY ", s.Qualify)
	if s.OrderBy != nil {
		w.ordering(s.OrderBy)
	}
	w.limits(s)
}

func (w *printer) with(s *ast.Select) {
	if s.With == nil {
		return
	}
	w.put("WITH ")
	if s.Recursive {
		w.put("RECURSIVE ")
	}
	several(w, s.With, func(e ast.With) {
		if e.Query == nil {
			w.item(e.Expr)
			return
		}
		w.put(ast.QuoteName(e.Name))
		w.columns(e.Columns)
		w.put(" AS ")
		w.bracketed(e.Query)
	})
	w.put(" ")
}

func (w *printer) columns(names []string) {
	if names != nil {
		w.put(" (")
		w.names(names)
		w.put(")")
	}
}

func (w *printer) grouping(g *ast.Grouping) {
	switch {
	case g.All:
		w.put(" GROUP BY ALL")
	case g.Form == "GROUPING SETS":
		w.put(" GROUP BY GROUPING SETS (")
		several(w, g.Sets, func(set []ast.Expr) {
			w.put("(")
			w.items(set)
			w.put(")")
		})
		w.put(")")
	case g.Form != "":
		w.put(" GROUP BY ", g.Form, "(")
		w.items(g.Items)
		w.put(")")
	case g.Items != nil:
		w.put(" GROUP BY ")
		w.items(g.Items)
	}
	w.flag(g.Rollup, " WITH ROLLUP")
	w.flag(g.Cube, " WITH CUBE")
	w.flag(g.Totals, " WITH TOTALS")
}

func (w *printer) flag(set bool, words string) {
	if set {
		w.put(words)
	}
}

func (w *printer) limits(s *ast.Select) {
	if l := s.LimitBy; l != nil {
		w.clause(" LIMIT ", l.Limit)
		w.clause(" OFFSET ", l.Offset)
		w.put(" BY ")
		w.flag(l.All, "ALL")
		w.items(l.Items)
	}
	w.clause(" LIMIT ", s.Limit)
	w.clause(" OFFSET ", s.Offset)
	w.flag(s.WithTies, " WITH TIES")
}
