package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/doc/comment"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"

	"sandbox/core/fault"
)

// Model is what all bindings have in common.
type Model struct {
	Classes   []Class
	Failures  []Failure
	Words     []Words
	Documents []Document
}

// Failure is one row of the table of failures.
type Failure struct {
	Code    string // in JSON
	C       int    // SandboxErrorCode
	HTTP    int    // status
	Meaning string
}

// Words is a set of words that a member of a document can be.
type Words struct {
	Name   string // of the type, such as BoxStatus
	Doc    string
	Values []Word
}

// Word is one of a set.
type Word struct {
	Name  string // in Go
	Value string // in JSON
	Doc   string // "" if the name says all
}

// Document is an object of the contract.
type Document struct {
	Name    string // of the Go type
	Doc     string
	Members []Member
}

// Member is a member of a document.
type Member struct {
	Name     string // in JSON
	Doc      string // "" if the name says all
	Type     Type
	Nullable bool // it may be null
	Optional bool // it may be absent
}

// Type is the type of a member's value.
type Type struct {
	// Kind is string, int, float, bool, time (RFC 3339), words, document, list, map
	// (of strings to values) or json (any value).
	Kind string
	Name string // of the words or the document
	Of   *Type  // of the values of a list or a map
}

// untyped names the sets of words whose constants have no type of their own, by
// the first of each set.
var untyped = map[string]string{
	"MayUseBoxes":    "Permission",
	"ServiceAccount": "PrincipalType",
	"Stdout":         "Stream",
	"UTF8":           "Encoding",
	"PullProgress":   "PullEvent",
}

// notDocuments are structs of package api that never are JSON objects.
var notDocuments = map[string]bool{"Event": true, "Capture": true, "Characters": true}

// Read reads the tables of the project: package api, whose sources lie in
// directory, the codes of the C header beside it, and the table of failures.
func Read(directory string) (_ Model, err error) {
	r := reader{files: token.NewFileSet()}
	if err := r.parse(directory); err != nil {
		return Model{}, fmt.Errorf("read the documents in %s: %w", directory, err)
	}
	if r.model.Classes, err = classes(filepath.Join(directory, "../include/sandbox.h")); err != nil {
		return Model{}, err
	}
	for _, row := range fault.Table() {
		r.model.Failures = append(r.model.Failures, Failure{Code: row.Code, C: row.C, HTTP: row.HTTP, Meaning: row.Class})
	}
	for _, file := range r.sources {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				if err := r.declaration(d); err != nil {
					return Model{}, err
				}
			}
		}
	}
	return r.model, nil
}

// reader makes a model of a package's syntax.
type reader struct {
	files   *token.FileSet
	sources []*ast.File
	scope   *types.Scope
	docs    map[string]string // of the types, by name
	model   Model
}

func (r *reader) parse(directory string) error {
	r.docs = map[string]string{}
	names, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err == nil && len(names) == 0 {
		err = fs.ErrNotExist
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, failure := parser.ParseFile(r.files, name, nil, parser.ParseComments)
		if failure != nil {
			return failure
		}
		r.sources = append(r.sources, file)
	}
	if err != nil {
		return err
	}
	config := types.Config{Importer: importer.ForCompiler(r.files, "source", nil)}
	checked, err := config.Check("sandbox/api", r.files, r.sources, nil)
	if err != nil {
		return err
	}
	r.scope = checked.Scope()
	return nil
}

func (r *reader) declaration(d *ast.GenDecl) error {
	switch d.Tok {
	case token.CONST:
		r.constants(d)
	case token.TYPE:
		for _, s := range d.Specs {
			s := s.(*ast.TypeSpec)
			r.docs[s.Name.Name] = text(d.Doc)
			if fields, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() && !notDocuments[s.Name.Name] {
				if err := r.document(s.Name.Name, fields); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// constants adds a set of words, if the constants are strings and have a name
// together.
func (r *reader) constants(d *ast.GenDecl) {
	first := d.Specs[0].(*ast.ValueSpec).Names[0].Name
	object := r.scope.Lookup(first)
	set := Words{Name: untyped[first], Doc: text(d.Doc)}
	if named, ok := object.Type().(*types.Named); ok {
		set.Name = named.Obj().Name()
		set.Doc = r.docs[set.Name]
	}
	if set.Name == "" {
		return
	}
	for _, s := range d.Specs {
		s := s.(*ast.ValueSpec)
		value := r.scope.Lookup(s.Names[0].Name).(*types.Const).Val()
		set.Values = append(set.Values, Word{Name: s.Names[0].Name, Value: constant.StringVal(value), Doc: text(s.Comment)})
	}
	r.model.Words = append(r.model.Words, set)
}

func (r *reader) document(name string, fields *ast.StructType) error {
	d := Document{Name: name, Doc: r.docs[name]}
	typed := r.scope.Lookup(name).Type().Underlying().(*types.Struct)
	comments := map[string]string{}
	for _, f := range fields.Fields.List {
		for _, n := range f.Names {
			comments[n.Name] = strings.TrimSpace(text(f.Doc) + " " + text(f.Comment))
		}
	}
	for i := range typed.NumFields() {
		field := typed.Field(i)
		if field.Embedded() {
			d.Members = append(d.Members, r.members(field.Name())...)
			continue
		}
		member, options, _ := strings.Cut(reflect.StructTag(typed.Tag(i)).Get("json"), ",")
		if member == "" {
			continue
		}
		m := Member{Name: member, Doc: comments[field.Name()], Optional: options != ""}
		of := field.Type()
		if p, ok := of.(*types.Pointer); ok {
			m.Nullable, of = true, p.Elem()
		}
		t, err := typeOf(of)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, field.Name(), err)
		}
		m.Type = t
		d.Members = append(d.Members, m)
	}
	r.model.Documents = append(r.model.Documents, d)
	return nil
}

// members returns the members of a document that was read before.
func (r *reader) members(name string) []Member {
	for _, d := range r.model.Documents {
		if d.Name == name {
			return d.Members
		}
	}
	return nil
}

// typeOf returns the type that a Go type has in JSON.
func typeOf(t types.Type) (Type, error) {
	switch t := t.(type) {
	case *types.Named:
		return named(t)
	case *types.Slice:
		of, err := typeOf(t.Elem())
		return Type{Kind: "list", Of: &of}, err
	case *types.Map:
		of, err := typeOf(t.Elem())
		return Type{Kind: "map", Of: &of}, err
	case *types.Basic:
		switch info := t.Info(); {
		case info&types.IsString != 0:
			return Type{Kind: "string"}, nil
		case info&types.IsInteger != 0:
			return Type{Kind: "int"}, nil
		case info&types.IsFloat != 0:
			return Type{Kind: "float"}, nil
		case info&types.IsBoolean != 0:
			return Type{Kind: "bool"}, nil
		}
	}
	return Type{}, fmt.Errorf("no binding knows the type %s", t)
}

func named(t *types.Named) (Type, error) {
	name := t.Obj().Name()
	switch t.Obj().Pkg().Path() + "." + name {
	case "time.Time":
		return Type{Kind: "time"}, nil
	case "encoding/json.RawMessage":
		return Type{Kind: "json"}, nil
	case "sandbox/core/fault.Kind", "sandbox/api.FileMode":
		return Type{Kind: "string"}, nil // as they write themselves
	}
	if _, ok := t.Underlying().(*types.Struct); ok {
		return Type{Kind: "document", Name: name}, nil
	}
	return Type{Kind: "words", Name: name}, nil
}

// text returns a comment as one paragraph without Go's links.
func text(c *ast.CommentGroup) string {
	var p comment.Parser
	printed := string((&comment.Printer{TextWidth: -1}).Text(p.Parse(c.Text())))
	return strings.Join(strings.Fields(printed), " ")
}
