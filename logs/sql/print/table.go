package print

import "sandbox/logs/sql/ast"

func (w *printer) from(f *ast.From) {
	w.put(" FROM ")
	w.table(f.First)
	for i := range f.Joins {
		w.join(&f.Joins[i])
	}
}

func (w *printer) join(j *ast.Join) {
	if j.Arrays != nil {
		w.put(" ", j.Kind, " JOIN ")
		w.items(j.Arrays)
		return
	}
	if j.Kind == "," {
		w.put(", ")
		w.table(j.Table)
		return
	}
	w.flag(j.Natural, " NATURAL")
	w.flag(j.Global, " GLOBAL")
	w.flag(j.Strictness != "", " "+j.Strictness)
	w.put(" ", j.Kind, " JOIN ")
	w.table(j.Table)
	w.clause(" ON ", j.On)
	if j.Using != nil {
		w.put(" USING (")
		w.items(j.Using)
		w.put(")")
	}
}

func (w *printer) table(t *ast.Table) {
	switch {
	case t.Query != nil:
		w.bracketed(t.Query)
	case t.Func != nil:
		w.call(t.Func)
	default:
		if t.Database != "" {
			w.put(ast.QuoteName(t.Database), ".")
		}
		w.put(ast.QuoteName(t.Name))
	}
	w.flag(t.Alias != "", " AS "+ast.QuoteName(t.Alias))
	w.columns(t.Columns)
	w.flag(t.Final, " FINAL")
	w.flag(t.Sample != "", " SAMPLE "+t.Sample)
	w.flag(t.SampleOffset != "", " OFFSET "+t.SampleOffset)
}

func (w *printer) window(d *ast.Window) {
	space := ""
	part := func(words string) {
		w.put(space, words)
		space = " "
	}
	w.put("(")
	if d.Base != "" {
		part(ast.QuoteName(d.Base))
	}
	if d.PartitionBy != nil {
		part("PARTITION BY ")
		w.items(d.PartitionBy)
	}
	if d.OrderBy != nil {
		w.ordering(d.OrderBy)
		space = " "
	}
	if d.Frame != nil {
		part(d.Frame.Unit)
		w.frame(d.Frame)
	}
	w.put(")")
}

func (w *printer) frame(f *ast.Frame) {
	if f.End == nil {
		w.bound(f.Begin)
		return
	}
	w.put(" BETWEEN")
	w.bound(f.Begin)
	w.put(" AND")
	w.bound(f.End)
}

func (w *printer) bound(b *ast.Bound) {
	w.put(" ")
	switch {
	case b.Value != nil:
		w.operand(b.Value)
		w.put(" ")
	case b.Side != "CURRENT ROW":
		w.put("UNBOUNDED ")
	}
	w.put(b.Side)
}

func (w *printer) ordering(o *ast.Ordering) {
	w.put(" ORDER BY ")
	several(w, o.Items, func(item ast.OrderItem) {
		if o.All {
			w.put("ALL")
		} else {
			w.item(item.Expr)
		}
		w.flag(item.Desc, " DESC")
		w.flag(item.Nulls != "", " NULLS "+item.Nulls)
		w.flag(item.Collate != "", " COLLATE "+ast.QuoteText(item.Collate))
		if item.Fill != nil {
			w.put(" WITH FILL")
			w.clause(" FROM ", item.Fill.From)
			w.clause(" TO ", item.Fill.To)
			w.clause(" STEP ", item.Fill.Step)
			w.clause(" STALENESS ", item.Fill.Staleness)
		}
	})
	w.flag(o.Interpolating, " INTERPOLATE")
	if o.Interpolate != nil {
		w.put(" (")
		several(w, o.Interpolate, func(i ast.Interpolation) {
			w.put(ast.QuoteName(i.Column))
			w.clause(" AS ", i.Expr)
		})
		w.put(")")
	}
}
