package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Transport holds every reply against the document: its status, its headers,
// its type and, unless it is a stream, its body. One that differs fails.
type Transport struct {
	Document *Document
	// Mount is what the server has before the paths of the document: "",
	// "/api", or "/v1/PREFIX" with a route prefix.
	Mount string
	Next  http.RoundTripper
}

// RoundTrip is what package http calls.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := t.check(resp); err != nil {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s %s answers %d, which docs/openapi.yaml does not have so: %w", r.Method, r.URL.Path, resp.StatusCode, err)
	}
	return resp, nil
}

func (t *Transport) check(resp *http.Response) error {
	body, err := whole(resp)
	if err != nil {
		return err
	}
	o := t.Document.find(resp.Request.Method, t.path(resp.Request))
	if o == nil { // no route, or not this method
		schema := "Error"
		if kind(resp) == problemType {
			schema = "Problem"
		}
		return t.Document.Validate("/components/schemas/"+schema, body)
	}
	if resp.StatusCode == http.StatusNotFound && object(decoded(body))["detail"] != nil { // a hosted server, of a path of another one
		return t.Document.Validate("/components/schemas/Error", body)
	}
	return t.Document.check(o, resp, body)
}

// path returns the path as the document has it.
func (t *Transport) path(r *http.Request) string {
	path := r.URL.EscapedPath()
	if !strings.HasPrefix(t.Mount, "/v1/") {
		return strings.TrimPrefix(path, t.Mount)
	}
	if rest, ok := strings.CutPrefix(path, t.Mount+"/"); ok {
		return "/v1/" + rest
	}
	if strings.HasPrefix(path, "/v1/boxes") { // which are behind the prefix alone
		return ""
	}
	return path
}

// problemType is the type of failures of the log queries.
const problemType = "application/problem+json"

// whole reads a body that is JSON and puts it back.
func whole(resp *http.Response) ([]byte, error) {
	if kind := kind(resp); kind != "application/json" && kind != problemType || resp.Request.Method == http.MethodHead {
		return nil, nil
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

func kind(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

func decoded(doc []byte) (v any) {
	_ = json.Unmarshal(doc, &v)
	return v
}

// check holds a reply against its operation.
func (d *Document) check(o *Operation, resp *http.Response, body []byte) error {
	status := strconv.Itoa(resp.StatusCode)
	at := d.follow(o.at + pointer("responses", status))
	if d.look(at) == nil && d.passes(*o) {
		return nil
	}
	if d.look(at) == nil {
		return fmt.Errorf("%s %s has no status %s: %s", o.Method, o.Pattern, status, body)
	}
	d.mu.Lock()
	d.seen[o.Method+" "+o.Pattern+" "+status] = true
	d.mu.Unlock()
	if err := d.checkHeaders(at, resp.Header); err != nil {
		return err
	}
	content := object(d.look(at + "/content"))
	if content == nil {
		return nil
	}
	if content[kind(resp)] == nil {
		return fmt.Errorf("its type is %q", resp.Header.Get("Content-Type"))
	}
	if body == nil {
		return nil
	}
	return d.Validate(at+pointer("content", kind(resp), "schema"), body)
}

func (d *Document) checkHeaders(at string, got http.Header) error {
	for name := range object(d.look(at + "/headers")) {
		header := d.follow(at + pointer("headers", name))
		if _, has := got[http.CanonicalHeaderKey(name)]; !has {
			if object(d.look(header))["required"] == true {
				return fmt.Errorf("it lacks the header %s", name)
			}
			continue
		}
		text := got.Get(name)
		doc, _ := json.Marshal(text)
		if _, err := strconv.Atoi(text); err == nil {
			doc = []byte(text)
		}
		if err := d.Validate(header+"/schema", doc); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	return nil
}

// Seen tells whether a reply of this status was held against the document.
func (d *Document) Seen(o Operation, status int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[o.Method+" "+o.Pattern+" "+strconv.Itoa(status)]
}
