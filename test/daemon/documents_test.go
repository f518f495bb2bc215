package daemon_test

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"sandbox/docs"
)

// TestDocuments wants the daemon to serve the OpenAPI document as it is, and a page
// with all of its operations that can run no script.
func TestDocuments(t *testing.T) {
	t.Parallel()
	p := serve(t)
	a := p.ask("GET", "/openapi.yaml", nil)
	a.want(t, 200, "")
	if !bytes.Equal(a.body, docs.OpenAPI) || a.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("got %s, %.100q", a.header, a.body)
	}
	var d struct {
		Paths map[string]map[string]yaml.Node
	}
	must(t, yaml.Unmarshal(a.body, &d))
	page := p.ask("GET", "/docs", nil)
	page.want(t, 200, "")
	operations := 0
	for path, methods := range d.Paths {
		for method, node := range methods {
			if method == "parameters" { // of all methods
				continue
			}
			operations++
			var o struct {
				ID string `yaml:"operationId"`
			}
			must(t, node.Decode(&o))
			if o.ID == "" || !strings.Contains(string(page.body), `id="`+o.ID+`"`) {
				t.Errorf("%s %s, %q, is not in the page", method, path, o.ID)
			}
		}
	}
	if operations < 30 {
		t.Errorf("%d operations", operations)
	}
	if policy := page.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
}
