package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandbox/core/fault"
)

// homonyms are codes of failures that are words of other lists, too, and the
// directories in which they may be spelled as such.
var homonyms = map[string]struct {
	dirs   []string
	reason string
}{
	"stopped":   {[]string{"api", "core/engine/shim", "cli"}, "a status of a box, and when it was stopped"},
	"canceled":  {[]string{"api"}, "a status of an exec, and the reason for it"},
	"not_found": {[]string{"api"}, "the reason of an exec whose command is not there"},
	"timeout":   {[]string{"cli"}, "the name of a flag"},
}

// TestCodes wants the code of a failure to be spelled in the table of failures
// alone: everything else names its kind, so that a reader finds all uses of it.
func TestCodes(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for _, row := range fault.Table() {
		codes[row.Code] = true
	}
	for path, text := range literals(t) {
		for _, lit := range text {
			dir := filepath.ToSlash(filepath.Dir(path))
			if codes[lit.text] && !slices.Contains(homonyms[lit.text].dirs, dir) {
				t.Errorf("%s:%d spells the code %q: name its kind of core/fault", path, lit.line, lit.text)
			}
		}
	}
}

// literal is a string literal of a source.
type literal struct {
	text string
	line int
}

// literals returns the string literals of all sources but tests and the table
// of failures, by path.
func literals(t *testing.T) map[string][]literal {
	t.Helper()
	all := map[string][]literal{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel("..", path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains([]string{".git", "build", "core/fault", "test", "core/enginetest"}, rel) || slices.Contains([]string{"dist", "node_modules", "out"}, entry.Name())):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				all[rel] = append(all[rel], literal{text, files.Position(lit.Pos()).Line})
			}
			return true
		})
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d sources: %v", len(all), err)
	}
	return all
}
