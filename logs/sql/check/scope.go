package check

import (
	"sandbox/logs/sql/ast"
	"sandbox/logs/sql/print"
)

// A scope holds what the names of a SELECT mean, besides columns.
type scope struct {
	outer   *scope
	top     bool                  // the outermost scope of a SELECT: those further out are of the query around it
	queries map[string]namedQuery // by the caller's names
	lambdas map[string]string     // the printed names of named lambdas, by the caller's
	consts  map[string]constant   // by their aliases
	own     map[string]bool       // parameters of a lambda; at the top, the niladic names that are columns
	hidden  string                // the named query whose body this is: it does not see itself in outer
}

// A namedQuery is a query that WITH names.
type namedQuery struct {
	printed string
	columns []string
	query   *ast.Query
}

// A constant is what an alias stands for, and its length when printed. The value
// is nil where the alias stands for something else, or where two have the name.
type constant struct {
	value  ast.Expr
	length int
}

// query returns the named query that a table's name means, and reports whether it
// means one.
func (s *scope) query(name string) (namedQuery, bool) {
	for ; s != nil; s = s.outer {
		if named, ok := s.queries[name]; ok {
			return named, true
		}
		if s.hidden == name && s.outer != nil { // a query does not see itself
			s = s.outer
		}
	}
	return namedQuery{}, false
}

// lambda returns the printed name of a named lambda, and reports whether the name
// means one.
func (s *scope) lambda(name string) (string, bool) {
	for ; s != nil; s = s.outer {
		if s.own[name] && !s.top {
			return "", false // a parameter
		}
		if printed, ok := s.lambdas[name]; ok {
			return printed, true
		}
	}
	return "", false
}

// means reports whether a name is an alias or a parameter of a lambda.
func (s *scope) means(name string) bool {
	for ; s != nil; s = s.outer {
		if _, ok := s.consts[name]; ok || s.own[name] {
			return true
		}
	}
	return false
}

// constant returns what an alias stands for. Its value may be nil.
func (s *scope) constant(name string) constant {
	for ; s != nil; s = s.outer {
		if x, ok := s.consts[name]; ok {
			return x
		}
	}
	return constant{}
}

// aliases adds the constants and lambdas that are named below x, outside of
// other queries.
func (c *checker) aliases(s *scope, x any) {
	ast.Inspect(x, func(node any) bool {
		switch node := node.(type) {
		case *ast.Query:
			return false
		case *ast.Alias:
			c.alias(s, node)
		}
		return true
	})
}

func (c *checker) alias(s *scope, a *ast.Alias) {
	switch x := a.X.(type) {
	case *ast.Lambda:
		if s.lambdas[a.Name] == "" {
			s.lambdas[a.Name] = c.unique(a.Name)
		}
	default:
		_, again := s.consts[a.Name]
		_, given := x.(*ast.Placeholder)
		if again || !given && !ast.IsConstant(x) {
			s.consts[a.Name] = constant{}
			return
		}
		s.consts[a.Name] = constant{x, len(print.Expr(x))}
	}
}

func newScope(outer *scope) *scope {
	return &scope{outer: outer, queries: map[string]namedQuery{}, lambdas: map[string]string{}, consts: map[string]constant{}, own: map[string]bool{}}
}
