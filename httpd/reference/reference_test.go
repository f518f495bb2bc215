package reference_test

import (
	"regexp"
	"strings"
	"testing"

	"sandbox/docs"
	"sandbox/httpd/reference"
)

// TestLinks wants each link within the page to lead somewhere, and nothing of the
// template to be left.
func TestLinks(t *testing.T) {
	t.Parallel()
	page, err := reference.Page(docs.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(string(page), `id="`+link[1]+`"`) {
			t.Errorf("the link to %s leads nowhere", link[1])
		}
	}
	for _, wrong := range []string{"ZgotmplZ", "<no value>", "<script"} {
		if strings.Contains(string(page), wrong) {
			t.Errorf("the page has %s", wrong)
		}
	}
}

// TestCommandLines looks at command lines of each kind.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	page, err := reference.Page(docs.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`curl "$URL/healthz"`,
		`curl "$URL/v1/boxes/build" -H "Authorization: Bearer $KEY"`,
		`curl -X POST "$URL/v1/run" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"cmd":["echo","hello"],"image":"default","network":"None"}'`,
		`curl -X POST "$URL/v1/images:import?name=mine:1" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/x-tar' --data-binary @FILE`,
		`curl -X POST "$URL/v1/boxes/build/files/upload" -H "Authorization: Bearer $KEY" -F dest=/root/ -F file=@FILE`,
	} {
		if !strings.Contains(string(page), "<pre>"+htmlOf(line)+"</pre>") {
			t.Errorf("the page lacks %s", line)
		}
	}
}

func htmlOf(s string) string {
	return strings.NewReplacer(`"`, "&#34;", "'", "&#39;", "&", "&amp;").Replace(s)
}

// TestBadDocuments wants an error for what the page can't show, not half a page.
func TestBadDocuments(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"[", "paths: {/a: {get: {tags: [x]}}}", "paths: {/a: {get: {operationId: a}}}"} {
		if page, err := reference.Page([]byte(doc)); err == nil {
			t.Errorf("%s: %s", doc, page)
		}
	}
}
