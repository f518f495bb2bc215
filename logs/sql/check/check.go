// Package check decides whether a statement may be answered. It walks the tree
// against lists of what is allowed: one table, functions that compute from their
// arguments alone, plain types. What is not on a list is refused. It also
// resolves the names that the engine might resolve otherwise than we do, in the
// tree itself: whether a name is a table, a query named WITH or a constant, and
// whether a function is a lambda's alias.
package check

import (
	"fmt"
	"slices"
	"strings"

	"sandbox/logs/sql/ast"
)

// The one table that statements read, and its database.
const (
	database = "otel"
	table    = "otel_logs"
)

// A TableName is a table as a statement names it. Database may be "".
type TableName struct{ Database, Name string }

// tables are the names that always mean the table.
var tables = []TableName{{database, table}, {"", table}, {"default", table}}

// A checker walks a statement and resolves its names in place. It keeps the
// first thing that is not allowed.
type checker struct {
	text    string // the statement, for the places of errors
	tables  []TableName
	err     *ast.Error
	count   int  // how many names were made
	inlined int  // the length of the constants that took the place of aliases
	named   bool // something in this item got another name than the caller's
}

// Query walks the query, which was read from source: each table must be
// otel.otel_logs, a named query or a harmless table function, each function one
// of the allow-list. It resolves names in place, so that no engine can resolve
// them otherwise: the table is qualified, and named queries and lambdas get
// names that nothing else has. Each of more means that table, too. The error is an
// *ast.Error.
func Query(q *ast.Query, source string, more ...TableName) error {
	c := &checker{text: source, tables: slices.Concat(tables, more)}
	c.query(q, nil)
	if c.err != nil {
		return c.err
	}
	return nil
}

// refuse keeps the first refusal.
func (c *checker) refuse(pos int, format string, args ...any) {
	if c.err == nil {
		c.err = ast.ErrorAt(c.text, pos, format, args...)
	}
}

// query checks each part. What the first part names in WITH, the others see too.
func (c *checker) query(q *ast.Query, outer *scope) {
	for i := range q.Parts {
		part := &q.Parts[i]
		if part.Nested != nil {
			c.query(part.Nested, outer)
			continue
		}
		with := c.selectQuery(part.Select, outer)
		if i == 0 {
			outer = with
		}
	}
}

// selectQuery checks one SELECT, and returns the scope of what its WITH names.
func (c *checker) selectQuery(s *ast.Select, outer *scope) *scope {
	named := c.named // belongs to an item of the query around this one
	defer func() { c.named = named }()
	with := newScope(outer)
	for i := range s.With {
		c.declare(with, &s.With[i])
	}
	from := newScope(with)
	from.top = true
	from.addColumns(s.From)
	inner := newScope(from)
	inner.addAliases(s.Items)
	for i := range s.With {
		inner.addAliases([]ast.Expr{s.With[i].Expr})
	}
	rest := *s
	rest.With = nil
	c.aliases(inner, rest)
	for i := range s.With {
		c.with(&s.With[i], s.Recursive, with, inner)
	}
	c.items(s, inner)
	c.walk(s.From, from)
	rest.Items, rest.From = nil, nil
	c.walk(rest, inner)
	return with
}

// declare adds what an entry of WITH names.
func (c *checker) declare(with *scope, w *ast.With) {
	if w.Query == nil {
		c.aliases(with, w.Expr)
		return
	}
	if _, again := with.queries[w.Name]; again {
		c.refuse(w.Pos, "%s is named twice", ast.Short(w.Name))
	}
	with.queries[w.Name] = namedQuery{printed: c.unique(w.Name), columns: w.Columns, query: w.Query}
}

// with checks an entry of WITH, and gives a query its printed name.
func (c *checker) with(w *ast.With, recursive bool, with, inner *scope) {
	if w.Query == nil {
		c.walk(w.Expr, inner)
		return
	}
	body := with
	if !recursive {
		body = newScope(with)
		body.hidden = w.Name
	}
	c.query(w.Query, body)
	w.Name = with.queries[w.Name].printed
}

// items checks what is selected. The engine names a column by its expression. So
// where that is printed with other names than the caller's, the caller's text
// becomes its alias.
func (c *checker) items(s *ast.Select, inner *scope) {
	for i := range s.Items {
		c.named = false
		c.walk(s.Items[i], inner)
		_, aliased := s.Items[i].(*ast.Alias)
		if c.named && !aliased && i < len(s.Texts) {
			s.Items[i] = &ast.Alias{X: s.Items[i], Name: s.Texts[i]}
		}
	}
}

// unique returns a name that no table and no function has.
func (c *checker) unique(name string) string {
	c.count++
	return fmt.Sprintf("%s/%d", name, c.count)
}

// walk checks x and everything below it.
func (c *checker) walk(x any, s *scope) {
	ast.Inspect(x, func(node any) bool {
		if c.err != nil {
			return false
		}
		switch node := node.(type) {
		case *ast.Query:
			c.query(node, s)
			return false
		case *ast.Table:
			c.table(node, s)
			if node.Func != nil { // its name is not one of the functions': only the arguments are walked
				args := newScope(s)
				args.top = true
				c.walk(node.Func.Args, args)
				return false
			}
		case *ast.Lambda:
			c.lambda(node, s)
			return false
		case *ast.Star:
			c.transformers(node)
		case *ast.Call:
			c.call(node, s)
		case *ast.Name:
			c.name(node, s)
		case *ast.Alias:
			if printed, ok := s.lambda(node.Name); ok {
				if _, isLambda := node.X.(*ast.Lambda); isLambda {
					node.Name = printed
				}
			}
		case *ast.Binary:
			if inOperators[node.Op] {
				c.set(node.Pos, &node.R, s)
			}
		case *ast.Placeholder:
			c.placeholder(node)
		case *ast.Type:
			c.dataType(node.Pos, node)
		}
		return true
	})
}

// table resolves where rows come from.
func (c *checker) table(t *ast.Table, s *scope) {
	switch {
	case t.Query != nil:
	case t.Func != nil:
		if !allowedTables.has(t.Func.Name) {
			c.refuse(t.Pos, "the table function %s is not allowed: %s", ast.Short(t.Func.Name), instead(t.Func.Name))
		}
		c.values(t.Func)
		c.zeros(t)
	default:
		c.tableName(t, s)
	}
}

// zeros makes zeros(n) a query of numbers(n), because the engine takes it for one
// that writes.
func (c *checker) zeros(t *ast.Table) {
	rest, ok := strings.CutPrefix(t.Func.Name, "zeros")
	if !ok {
		return
	}
	if len(t.Func.Args) > 1 {
		c.refuse(t.Pos, "%s takes one number", t.Func.Name)
	}
	zero := &ast.Call{Pos: t.Pos, Name: "toUInt8", Args: []ast.Expr{&ast.Literal{Value: "0"}}}
	t.Query = &ast.Query{Parts: []ast.Part{{Select: &ast.Select{
		Items: []ast.Expr{&ast.Alias{X: zero, Name: "zero"}},
		From:  &ast.From{First: &ast.Table{Pos: t.Pos, Func: &ast.Call{Pos: t.Pos, Name: "numbers" + rest, Args: t.Func.Args}}},
	}}}}
	t.Func = nil
}
