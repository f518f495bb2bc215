package sql

func printType(t *Type) string {
	var w printer
	w.dataType(t)
	return w.String()
}

func (w *printer) dataType(t *Type) {
	w.put(t.Name)
	if t.Args == nil {
		return
	}
	w.put("(")
	several(w, t.Args, func(a TypeArg) {
		switch {
		case a.Literal != nil:
			w.literal(a.Literal)
			if a.Value != nil {
				w.put(" = ", a.Value.Value)
			}
		case a.Value != nil:
			w.put(a.Name, "=", a.Value.Value)
		default:
			w.flag(a.Name != "", quoteName(a.Name)+" ")
			w.dataType(a.Type)
		}
	})
	w.put(")")
}
