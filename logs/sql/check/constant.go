package check

import (
	"strings"

	"sandbox/logs/sql/ast"
)

// constants are the functions that tell a fact of the server, which we answer
// ourselves, by their names in lower case. Programs ask for them when they
// connect. The version is that of the dialect that this gate reads.
var constants = map[string]string{
	"version": "26.7.2.1", "timezone": "UTC", "servertimezone": "UTC",
	"currentdatabase": database,
}

// constant makes the call of such a function that of a constant. It reports
// whether it is one.
func (c *checker) constant(f *ast.Call) bool {
	value, ok := constants[strings.ToLower(f.Name)]
	if !ok {
		return false
	}
	if len(f.Args) > 0 || f.Parametric || f.Distinct || f.Filter != nil || f.Nulls != "" || f.Over != nil || f.OverName != "" {
		c.refuse(f.Pos, "%s takes no arguments", f.Name)
		return true
	}
	f.Name, f.Args = "toString", []ast.Expr{&ast.Literal{Form: ast.Text, Value: value}}
	c.named = true
	return true
}

// transformers refuses such a function behind APPLY, where it is no call: it would
// get the columns as its arguments.
func (c *checker) transformers(s *ast.Star) {
	for _, t := range s.Transformers {
		if f, ok := t.Func.(*ast.Call); ok && constants[strings.ToLower(f.Name)] != "" {
			c.refuse(f.Pos, "%s takes no arguments", f.Name)
		}
	}
}
