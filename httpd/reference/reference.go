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
	"regexp"

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
	r := newRenderer()
	t, err := template.New("page").Funcs(template.FuncMap{"schema": r.schema, "prose": r.prose}).Parse(layout)
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

// renderer renders the texts of a document. Its patterns are compiled once a page.
type renderer struct{ quoted, bold, component *regexp.Regexp }

func newRenderer() renderer {
	return renderer{
		quoted: regexp.MustCompile("`([^`]*)`"), bold: regexp.MustCompile(`\*\*([^*]*)\*\*`),
		component: regexp.MustCompile(`#/components/schemas/([A-Za-z]+)`),
	}
}

// prose returns a description, with the little of Markdown that ours have.
func (r renderer) prose(text string) template.HTML {
	text = r.quoted.ReplaceAllString(template.HTMLEscapeString(text), "<code>$1</code>")
	return template.HTML(r.bold.ReplaceAllString(text, "<b>$1</b>")) //nolint:gosec // escaped
}

// schema returns a schema as YAML, with links to the schemas that it names.
func (r renderer) schema(node yaml.Node) (template.HTML, error) {
	if node.IsZero() {
		return "", nil
	}
	text, err := yaml.Marshal(&node)
	escaped := template.HTMLEscapeString(string(text))
	return template.HTML(r.component.ReplaceAllString(escaped, `<a href="#schema-$1">$1</a>`)), err //nolint:gosec // escaped
}
