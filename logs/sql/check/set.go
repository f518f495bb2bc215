package check

import (
	"strings"

	"sandbox/logs/sql/ast"
	"sandbox/logs/sql/print"
)

// inOperators are those whose right side the engine may take for a table.
var inOperators = map[string]bool{"IN": true, "NOT IN": true, "GLOBAL IN": true, "GLOBAL NOT IN": true}

// set resolves what stands right of IN. The engine would take a bare name there
// for a table.
func (c *checker) set(pos int, x *ast.Expr, s *scope) {
	switch right := bare(*x).(type) {
	case *ast.Star:
		c.refuse(pos, "a star cannot be on the right of IN")
	case *ast.Call:
		if right.Name == "format" {
			c.refuse(right.Pos, "%s cannot be on the right of IN", right.Name)
		}
	case *ast.Name:
		c.namedSet(x, right, s)
	}
}

func (c *checker) namedSet(x *ast.Expr, n *ast.Name, s *scope) {
	name := strings.Join(n.Names(), ".")
	if len(n.Parts) == 1 {
		if named, ok := s.query(name); ok {
			*x = &ast.Name{Pos: n.Pos, Parts: []ast.NamePart{{Name: named.printed}}}
			c.named = true
			return
		}
		if found := s.constant(name); found.value != nil {
			c.inline(n.Pos, x, found)
			return
		}
	}
	c.refuse(n.Pos, "the name %s cannot be on the right of IN: write has(array, x) or a subquery", ast.Short(name))
}

// inline puts a constant in the place of its alias.
func (c *checker) inline(pos int, x *ast.Expr, found constant) {
	*x = found.value
	c.named = true
	if c.inlined += found.length; c.inlined > print.MaxLength {
		c.refuse(pos, "the statement is too long once its aliases are written out")
	}
}

// bare returns an expression without its aliases and brackets.
func bare(x ast.Expr) ast.Expr {
	for {
		switch y := x.(type) {
		case *ast.Alias:
			x = y.X
		case *ast.Paren:
			x = y.X
		default:
			return x
		}
	}
}
