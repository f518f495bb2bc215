package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestOneDefinitionOfADocument wants no struct of the project to have the JSON
// members of one that package api has: whoever needs a document takes it from
// there. Two members, as a code and its message, may meet by chance. What has
// pointers alone is the reader of a request, which has to tell a member that is
// absent from one that is zero.
func TestOneDefinitionOfADocument(t *testing.T) {
	t.Parallel()
	documents := map[string]string{} // name by members
	for _, s := range structs(t, "../api") {
		if strings.Count(s.members, " ") >= 2 {
			documents[s.members] = s.where
		}
	}
	if len(documents) < 10 {
		t.Fatalf("package api has %d documents: is it read?", len(documents))
	}
	for _, dir := range []string{"auth", "capi", "cli", "client", "core", "daemon", "httpd", "logs", "mcp", "profile", "spool"} {
		for _, s := range structs(t, "../"+dir) {
			if document, twice := documents[s.members]; twice {
				t.Errorf("%s: a struct with the members of %s: use that", s.where, document)
			}
		}
	}
}

// document is a struct by the names of its members in JSON, sorted.
type document struct{ where, members string }

// structs returns the structs below a directory that have JSON members, but for
// those of tests.
func structs(t *testing.T, root string) []document {
	t.Helper()
	var all []document
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				if members := jsonMembers(s); members != "" {
					all = append(all, document{files.Position(s.Pos()).String(), members})
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// jsonMembers returns the names in a struct's json tags, or "" for one of
// pointers alone.
func jsonMembers(s *ast.StructType) string {
	var names []string
	reader := true
	for _, field := range s.Fields.List {
		if _, pointer := field.Type.(*ast.StarExpr); !pointer {
			reader = false
		}
		if field.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(field.Tag.Value)
		if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	if reader {
		return ""
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
