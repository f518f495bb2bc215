package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"strings"
	"testing"
)

// TestWords holds the states and reasons of execs equal in core, for the host,
// and in wire, for init, which does without core.
func TestWords(t *testing.T) {
	t.Parallel()
	host, guest := words(t, "../record.go", "Exec", "Reason"), words(t, "wire/guest.go", "State", "Reason")
	delete(host, "Running") // no end
	delete(host, "Lost")    // no init tells of it
	if len(guest) < 8 || !maps.Equal(host, guest) {
		t.Errorf("host %v, init %v", host, guest)
	}
}

// words returns the constants of text whose names begin with a prefix; that of
// states is cut off.
func words(t *testing.T, file, state, reason string) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || value.Kind != token.STRING {
			return true
		}
		if name := spec.Names[0].Name; strings.HasPrefix(name, reason) {
			found[name] = value.Value
		} else if name, ok := strings.CutPrefix(name, state); ok {
			found[name] = value.Value
		}
		return true
	})
	return found
}
