// Package reference makes a page for people of the OpenAPI document: each operation
// with its parameters, bodies, replies, permission and a command line of curl.
package reference

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed page.html
var layout string

//go:embed page.css
var style string

// Policy is the Content-Security-Policy of the page: it has no script, loads
// nothing, and has the one style of its own.
func Policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// Page returns the page of an OpenAPI document in YAML. It fails if the document
// is not one of ours.
func Page(document []byte) ([]byte, error) {
	var d description
	if err := yaml.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	groups, err := d.groups()
	if err != nil {
		return nil, err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"schema": schema, "prose": prose}).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("read the layout of the page: %w", err)
	}
	var page bytes.Buffer
	err = t.Execute(&page, map[string]any{
		"Style": template.CSS(style), //nolint:gosec // it is a file of this package
		"Info":  d.Info, "Groups": groups, "Schemas": pairs[yaml.Node](d.Components.Schemas),
	})
	return page.Bytes(), err
}

// prose returns a description, with the little of Markdown that ours have.
func prose(text string) template.HTML {
	text = tagged(template.HTMLEscapeString(text), "`", "code")
	return template.HTML(tagged(text, "**", "b")) //nolint:gosec // escaped
}

// tagged puts what stands between two marks between tags.
func tagged(text, mark, tag string) string {
	parts := strings.Split(text, mark)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "<" + tag + ">" + parts[i] + "</" + tag + ">"
	}
	return strings.Join(parts, "")
}

// letters are what the names of schemas are made of.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// schema returns a schema as YAML, with links to the schemas that it names.
func schema(node yaml.Node) (template.HTML, error) {
	if node.IsZero() {
		return "", nil
	}
	text, err := yaml.Marshal(&node)
	parts := strings.Split(template.HTMLEscapeString(string(text)), "#/components/schemas/")
	for i, part := range parts[1:] {
		rest := strings.TrimLeft(part, letters)
		name := strings.TrimSuffix(part, rest)
		parts[i+1] = `<a href="#schema-` + name + `">` + name + `</a>` + rest
	}
	return template.HTML(strings.Join(parts, "")), err //nolint:gosec // escaped
}
