// Package openapi holds replies of the daemon against docs/openapi.yaml.
package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"sandbox/test/programs"
)

// Document is docs/openapi.yaml. It is safe for concurrent use.
type Document struct {
	Operations []Operation

	root     map[string]any
	mu       sync.Mutex // of compiler, schemas and seen
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
	seen     map[string]bool // statuses of operations: "POST /v1/run 200"
}

// Operation is a method of a path.
type Operation struct {
	Method, Pattern string
	// Permissions is what the key must have; Open: there is none needed.
	Permissions []string
	Open        bool

	at   string // pointer
	path *regexp.Regexp
}

// location names the document within the schema compiler.
const location = "openapi.json"

// Load reads the document.
func Load(t testing.TB) *Document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programs.Tree(), "docs/openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := read(text)
	if err != nil {
		t.Fatal("docs/openapi.yaml: ", err)
	}
	return d
}

func read(text []byte) (*Document, error) {
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(tree) // numbers as the schema compiler wants them
	if err != nil {
		return nil, err
	}
	if tree, err = jsonschema.UnmarshalJSON(bytes.NewReader(doc)); err != nil {
		return nil, err
	}
	d := &Document{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, seen: map[string]bool{}}
	d.root, _ = tree.(map[string]any)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(location, tree); err != nil {
		return nil, err
	}
	for pattern, item := range object(d.root["paths"]) {
		for method := range object(item) {
			if method != "parameters" {
				d.Operations = append(d.Operations, d.operation(method, pattern))
			}
		}
	}
	// A path with a verb before the one that would take the verb for a part of its parameter.
	slices.SortFunc(d.Operations, func(a, b Operation) int {
		return cmp.Or(strings.Compare(b.Pattern, a.Pattern), strings.Compare(a.Method, b.Method))
	})
	return d, nil
}

func (d *Document) operation(method, pattern string) Operation {
	o := Operation{Method: strings.ToUpper(method), Pattern: pattern, at: pointer("paths", pattern, method)}
	slashes := strings.NewReplacer(`\{reference\}`, ".+", `/\{path\}`, "/.*") // the parameters that may have slashes
	path := slashes.Replace(regexp.QuoteMeta(pattern))
	o.path = regexp.MustCompile("^" + regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(path, "[^/]+") + "$")
	security, own := object(d.look(o.at))["security"].([]any)
	if !own {
		security, _ = d.root["security"].([]any)
	}
	o.Open = len(security) == 0
	for _, scheme := range security {
		names, _ := object(scheme)["apiKey"].([]any)
		for _, name := range names {
			o.Permissions = append(o.Permissions, fmt.Sprint(name))
		}
	}
	return o
}

// find returns the operation of a request; nil if there is none.
func (d *Document) find(method, path string) *Operation {
	pattern := ""
	for i, o := range d.Operations {
		if pattern == "" && o.path.MatchString(path) {
			pattern = o.Pattern
		}
		if o.Pattern == pattern && (o.Method == method || d.passes(o)) {
			return &d.Operations[i]
		}
	}
	return nil
}

// passes tells whether an operation passes requests of any method on to a program,
// whose answers the document can't know: they are its default.
func (d *Document) passes(o Operation) bool {
	return d.look(o.at+pointer("responses", "default")) != nil
}

// Validate holds JSON against what a pointer names, such as
// "/components/schemas/Box".
func (d *Document) Validate(at string, doc []byte) error {
	schema, err := d.schema(at)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *Document) schema(at string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.schemas[at] == nil {
		schema, err := d.compiler.Compile(location + "#" + at)
		if err != nil {
			return nil, err
		}
		d.schemas[at] = schema
	}
	return d.schemas[at], nil
}

// pointer returns a JSON pointer.
func pointer(tokens ...string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}

// look returns what a pointer names; nil if there is nothing.
func (d *Document) look(at string) any {
	var v any = d.root
	for token := range strings.SplitSeq(at, "/") {
		if token == "" { // before the first one
			continue
		}
		v = object(v)[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
	}
	return v
}

// follow returns where a pointer leads, references followed.
func (d *Document) follow(at string) string {
	for {
		ref, ok := object(d.look(at))["$ref"].(string)
		if !ok {
			return at
		}
		at = strings.TrimPrefix(ref, "#")
	}
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
