package sql

import "strings"

// set resolves what stands right of IN. The engine would take a name there
// for a table.
func (c *checker) set(pos int, x *Expr, s *scope) {
	switch right := bare(*x).(type) {
	case *Star:
		c.refuse(pos, "a star cannot stand right of IN")
	case *Call:
		if right.Name == "format" {
			c.refuse(right.Pos, "%s cannot stand right of IN", right.Name)
		}
	case *Name:
		c.namedSet(x, right, s)
	}
}

func (c *checker) namedSet(x *Expr, n *Name, s *scope) {
	name := strings.Join(plain(n), ".")
	if len(n.Parts) == 1 {
		if named, ok := s.query(name); ok {
			*x = &Name{Pos: n.Pos, Parts: []NamePart{{Name: named.printed}}}
			c.named = true
			return
		}
		if found := s.constant(name); found.value != nil {
			c.inline(n.Pos, x, found)
			return
		}
	}
	c.refuse(n.Pos, "the name %s cannot stand right of IN: write has(array, x) or a subquery", short(name))
}

// inline puts a constant in the place of its alias.
func (c *checker) inline(pos int, x *Expr, found constant) {
	*x = found.value
	c.named = true
	if c.inlined += found.length; c.inlined > maxPrinted {
		c.refuse(pos, "the statement is too long once its aliases are written out")
	}
}

// bare takes aliases and brackets off.
func bare(x Expr) Expr {
	for {
		switch y := x.(type) {
		case *Alias:
			x = y.X
		case *Paren:
			x = y.X
		default:
			return x
		}
	}
}
