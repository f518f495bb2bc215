package print_test

import (
	"testing"

	"sandbox/logs/sql/ast"
	"sandbox/logs/sql/print"
)

// TestExpr wants brackets around each operand that has operators of its own, and
// around arguments of functions whose syntax has words.
func TestExpr(t *testing.T) {
	t.Parallel()
	a := &ast.Name{Parts: []ast.NamePart{{Name: "a"}}}
	sum := &ast.Binary{Op: "+", L: a, R: &ast.Literal{Value: "1"}}
	for want, x := range map[string]ast.Expr{
		"(`a` + 1) * `a`":         &ast.Binary{Op: "*", L: sum, R: a},
		"- (`a` + 1)":             &ast.Unary{Op: "-", X: sum},
		"CAST((`a` + 1) AS Int8)": &ast.Cast{X: sum, Type: &ast.Type{Name: "Int8"}},
		"abs(`a` + 1)":            &ast.Call{Name: "abs", Args: []ast.Expr{sum}},
		"position((`a` + 1))":     &ast.Call{Name: "position", Args: []ast.Expr{sum}},
		"`not`(`a`)":              &ast.Call{Name: "not", Args: []ast.Expr{a}},
		"`a b`(`a`)":              &ast.Call{Name: "a b", Args: []ast.Expr{a}},
		"(`a`).`b`":               &ast.Member{X: a, Name: "b"},
		"`a`.1":                   &ast.Member{X: a, Name: "1", Numeric: true},
		"(1,)":                    &ast.Tuple{Items: []ast.Expr{&ast.Literal{Value: "1"}}},
		"`x` -> (`a` + 1)":        &ast.Lambda{Params: []string{"x"}, Body: sum},
	} {
		if got := print.Expr(x); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
