package check

import (
	"slices"
	"strings"

	"sandbox/logs/sql/ast"
)

// tableName resolves a name where a table stands.
func (c *checker) tableName(t *ast.Table, s *scope) {
	if named, ok := s.query(t.Name); ok && t.Database == "" {
		if t.Alias == "" {
			t.Alias = t.Name
		}
		t.Name = named.printed
		return
	}
	if !slices.Contains(c.tables, TableName{t.Database, t.Name}) {
		c.refuse(t.Pos, "the table %s is not allowed: %s", ast.Short(title(t)), instead(title(t)))
	}
	if t.Alias == "" && t.Name != table {
		t.Alias = t.Name // columns may be written with it
	}
	t.Database, t.Name = database, table
}

// instead says what to write in the place of a table or a table function that is
// not allowed.
func instead(name string) string {
	switch strings.ToLower(name) {
	case "system.one":
		return "a SELECT without FROM has one row"
	case "system.columns", "system.tables", "system.databases":
		return "the columns of the log table are at GET /v1/observability/schema"
	case "view":
		return "write FROM (SELECT ...)"
	case "system.zeros", "system.zeros_mt", "system.numbers", "system.numbers_mt":
		return "write numbers(n)"
	default:
		return "statements read the table " + database + "." + table
	}
}

// title returns the table's name as the caller wrote it.
func title(t *ast.Table) string {
	if t.Database == "" {
		return t.Name
	}
	return t.Database + "." + t.Name
}

// name resolves a lambda that is handed to a function by its name, and refuses the
// name of a niladic function, unless the SELECT has a column or an alias of it.
func (c *checker) name(n *ast.Name, s *scope) {
	if len(n.Parts) != 1 {
		c.path(n)
		return
	}
	name := n.Parts[0].Name
	if printed, ok := s.lambda(name); ok {
		n.Parts[0].Name = printed
		c.named = true
	}
	if niladic.has(name) && !s.owns(name) {
		c.refuse(n.Pos, "the function %s is not allowed: write %s.%[1]s for a column of that name", ast.Short(name), table)
	}
}

// lambda checks the body, where the parameters are nearest.
func (c *checker) lambda(l *ast.Lambda, s *scope) {
	body := newScope(s)
	for _, name := range l.Params {
		body.own[name] = true
	}
	c.walk(l.Body, body)
}

// path checks the types in the path of a column of type JSON. A column that is
// written with another name of the table loses its database, since the table has
// its right one, and the other name as an alias.
func (c *checker) path(n *ast.Name) {
	if len(n.Parts) > 2 && n.Parts[0].Name != database && slices.Contains(c.tables, TableName{n.Parts[0].Name, n.Parts[1].Name}) {
		n.Parts = n.Parts[1:]
	}
	for _, part := range n.Parts {
		if part.Mark == ":" {
			c.typeText(n.Pos, part.Name)
		}
	}
}

// maxPlaceholder is the longest name, in bytes, that a value can be given for.
const maxPlaceholder = 64

func (c *checker) placeholder(h *ast.Placeholder) {
	if len(h.Name) > maxPlaceholder || !ast.IsPlain(h.Name) || h.Name[0] == '_' {
		c.refuse(h.Pos, "%s can't be the name of a placeholder: use a letter, then letters, digits and _, %d at most", ast.Short(h.Name), maxPlaceholder)
	}
}

// dataType checks one type, without what is in its brackets. A string there
// is a time zone, unless the type is an enumeration.
func (c *checker) dataType(pos int, t *ast.Type) {
	if !isAllowedType(t.Name) {
		c.refuse(pos, "the type %s is not allowed", ast.Short(t.Name))
	}
	for _, arg := range t.Args {
		if l := arg.Literal; l != nil && l.Form == ast.Text && !hasPrefix(t.Name, "enum") && !isZone(l.Value) {
			c.refuse(pos, "%s is not a time zone", ast.Short(l.Value))
		}
	}
}
