package check

import "sandbox/logs/sql/ast"

// niladic are the functions that the engine calls by their bare names, in any case
// and even in quotes, where no column and no alias has the name. They tell facts of
// the server, which are not the caller's business. Some of them only the SQL
// standard calls so.
var niladic = gather([]group{{names: `user* current_user* session_user* system_user* currentUser* current_database* currentDatabase* database*
	schema* current_schema* current_catalog* current_role* current_path*`}})

// owns reports whether a name is one of the SELECT's own: an alias, a column of a
// subquery, or a parameter of a lambda around it.
func (s *scope) owns(name string) bool {
	for ; s != nil; s = s.outer {
		if s.own[name] {
			return true
		}
		if s.top {
			return false
		}
	}
	return false
}

// addAliases adds the niladic names among the aliases that are seen everywhere in
// a SELECT. An alias for such a name is left out: the engine would look further.
func (s *scope) addAliases(items []ast.Expr) {
	for _, item := range items {
		if a, ok := item.(*ast.Alias); ok && niladic.has(a.Name) && !hasNiladic(a.X) {
			s.own[a.Name] = true
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

// addColumns adds the columns of the tables, as far as they are known here.
func (s *scope) addColumns(f *ast.From) {
	if f == nil {
		return
	}
	s.addTable(f.First)
	for _, j := range f.Joins {
		s.addAliases(j.Arrays)
		if j.Table != nil {
			s.addTable(j.Table)
		}
	}
}

func (s *scope) addTable(t *ast.Table) {
	q, columns := t.Query, t.Columns
	if named, ok := s.query(t.Name); ok && t.Database == "" {
		q, columns = named.query, append(columns, named.columns...)
	}
	for _, name := range columns {
		s.addColumn(name)
	}
	if q != nil && len(columns) == 0 {
		s.addQuery(q)
	}
}

// addQuery adds the columns of a query: its first part names them.
func (s *scope) addQuery(q *ast.Query) {
	if q.Parts[0].Nested != nil {
		s.addQuery(q.Parts[0].Nested)
		return
	}
	first := q.Parts[0].Select
	for _, item := range first.Items {
		switch item := item.(type) {
		case *ast.Alias:
			s.addColumn(item.Name)
		case *ast.Name:
			s.addColumn(item.Parts[len(item.Parts)-1].Name)
		case *ast.Star:
			if len(item.Transformers) == 0 && !item.Columns {
				s.addStar(first.From)
			}
		}
	}
}

func (s *scope) addStar(f *ast.From) {
	if f != nil && f.First.Query != nil && len(f.Joins) == 0 {
		s.addQuery(f.First.Query)
	}
}

func (s *scope) addColumn(name string) {
	if niladic.has(name) {
		s.own[name] = true
	}
}
