package check

import "sandbox/logs/sql/ast"

// niladic are the names that are calls without brackets to the engine, in any
// case and in quotes, too, where nothing nearer has the name: facts that are
// none of a caller's business. Some are only so in the standard.
var niladic = gather([]group{{names: `user* current_user* session_user* system_user* currentUser* current_database* currentDatabase* database*
	schema* current_schema* current_catalog* current_role* current_path*`}})

// gives reports whether a name is one of the SELECT's own: an alias, a column
// of a subquery, or a parameter of a lambda around it.
func (s *scope) gives(name string) bool {
	for ; s != nil; s = s.outer {
		if s.given[name] {
			return true
		}
		if s.top {
			return false
		}
	}
	return false
}

// giveAliases adds the aliases that are seen everywhere in a SELECT. One that
// itself stands for such a name gives nothing: the engine would look further.
func (s *scope) giveAliases(items []ast.Expr) {
	for _, item := range items {
		if a, ok := item.(*ast.Alias); ok && niladic.has(a.Name) && !hasNiladic(a.X) {
			s.given[a.Name] = true
		}
	}
}

func hasNiladic(x ast.Expr) bool {
	found := false
	ast.Inspect(x, func(node any) bool {
		n, ok := node.(*ast.Name)
		found = found || ok && len(n.Parts) == 1 && niladic.has(n.Parts[0].Name)
		return !found
	})
	return found
}

// giveColumns adds the columns of the tables, as far as they are known here.
func (s *scope) giveColumns(f *ast.From) {
	if f == nil {
		return
	}
	s.giveTable(f.First)
	for _, j := range f.Joins {
		s.giveAliases(j.Arrays)
		if j.Table != nil {
			s.giveTable(j.Table)
		}
	}
}

func (s *scope) giveTable(t *ast.Table) {
	q, columns := t.Query, t.Columns
	if named, ok := s.query(t.Name); ok && t.Database == "" {
		q, columns = named.query, append(columns, named.columns...)
	}
	for _, name := range columns {
		s.giveColumn(name)
	}
	if q != nil && len(columns) == 0 {
		s.giveQuery(q)
	}
}

// giveQuery adds the columns of a query: its first part names them.
func (s *scope) giveQuery(q *ast.Query) {
	if q.Parts[0].Nested != nil {
		s.giveQuery(q.Parts[0].Nested)
		return
	}
	first := q.Parts[0].Select
	for _, item := range first.Items {
		switch item := item.(type) {
		case *ast.Alias:
			s.giveColumn(item.Name)
		case *ast.Name:
			s.giveColumn(item.Parts[len(item.Parts)-1].Name)
		case *ast.Star:
			if len(item.Transformers) == 0 && !item.Columns {
				s.giveStar(first.From)
			}
		}
	}
}

func (s *scope) giveStar(f *ast.From) {
	if f != nil && f.First.Query != nil && len(f.Joins) == 0 {
		s.giveQuery(f.First.Query)
	}
}

func (s *scope) giveColumn(name string) {
	if niladic.has(name) {
		s.given[name] = true
	}
}
