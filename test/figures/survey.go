package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// survey is what the files of a tree add up to.
type survey struct {
	functions, files []item // of code, without tests
	exported         int    // names
	undocumented     []string
	code, tests      int // lines
}

// item is a function or a file.
type item struct {
	name  string // with the place, as compilers write it
	lines int
}

// add surveys one file. Tests, and the packages that only tests use, count for
// their lines alone, and files that a program has written not at all.
func (s *survey) add(path string, text []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	lines := bytes.Count(text, []byte("\n"))
	if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/") {
		s.tests += lines
		return nil
	}
	s.code += lines
	s.files = append(s.files, item{path, lines})
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			s.function(fset, d)
		case *ast.GenDecl:
			s.group(fset, d)
		}
	}
	return nil
}

func (s *survey) function(fset *token.FileSet, d *ast.FuncDecl) {
	from, to := fset.Position(d.Pos()), fset.Position(d.End())
	s.functions = append(s.functions, item{fmt.Sprintf("%s:%d: %s", from.Filename, from.Line, d.Name.Name), to.Line - from.Line + 1})
	if d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
		s.name(fset, d.Name, d.Doc)
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// group surveys a declaration of types, constants or variables. A comment above
// a group is for all constants and variables in it.
func (s *survey) group(fset *token.FileSet, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if !d.Lparen.IsValid() {
				doc = d.Doc
			}
			s.name(fset, spec.Name, doc, spec.Comment)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				s.name(fset, name, d.Doc, spec.Doc, spec.Comment)
			}
		}
	}
}

// name counts an exported name, and notes it when none of docs is there.
func (s *survey) name(fset *token.FileSet, name *ast.Ident, docs ...*ast.CommentGroup) {
	if !name.IsExported() {
		return
	}
	s.exported++
	for _, doc := range docs {
		if doc.Text() != "" {
			return
		}
	}
	s.undocumented = append(s.undocumented, fmt.Sprintf("%s: %s", fset.Position(name.Pos()), name.Name))
}
