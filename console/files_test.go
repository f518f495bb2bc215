package console

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

// TestServe serves a page of a few files.
func TestServe(t *testing.T) {
	t.Parallel()
	script := strings.Repeat("export const a = 1;\n", 100)
	p := read(fstest.MapFS{
		"README.md":            {Data: []byte("not of the page")},
		"index.html":           {Data: []byte("<!doctype html>")},
		"assets/index-1a2b.js": {Data: []byte(script)},
		"icon.bin":             {Data: []byte("\x00\x01")},
	})
	const immutable = "public, max-age=31536000, immutable"
	for _, tt := range []struct {
		name, accept            string
		status                  int
		kind, cache, body, pack string
	}{
		{"", "", 200, "text/html; charset=utf-8", "no-store", "<!doctype html>", ""},
		{"index.html", "gzip", 200, "text/html; charset=utf-8", "no-store", "<!doctype html>", ""}, // packed it is larger
		{"assets/index-1a2b.js", "", 200, "text/javascript; charset=utf-8", immutable, script, ""},
		{"assets/index-1a2b.js", "gzip, br", 200, "text/javascript; charset=utf-8", immutable, script, "gzip"},
		{"assets/index-1a2b.js", "br", 200, "text/javascript; charset=utf-8", immutable, script, ""},
		{"icon.bin", "", 200, "application/octet-stream", "no-store", "\x00\x01", ""},
		{"README.md", "", 404, "text/plain; charset=utf-8", "no-store", "there is no such file\n", ""},
		{"assets/index-0000.js", "", 404, "text/plain; charset=utf-8", "no-store", "there is no such file\n", ""},
		{"assets", "", 404, "text/plain; charset=utf-8", "no-store", "there is no such file\n", ""},
		{"../files.go", "", 404, "text/plain; charset=utf-8", "no-store", "there is no such file\n", ""},
	} {
		r := httptest.NewRequest("GET", "/ui/", nil)
		r.Header.Set("Accept-Encoding", tt.accept)
		w := httptest.NewRecorder()
		Secure(w.Header(), true)
		p.serve(w, r, tt.name)
		h := w.Header()
		if w.Code != tt.status || h.Get("Content-Type") != tt.kind || h.Get("Cache-Control") != tt.cache || h.Get("Content-Encoding") != tt.pack {
			t.Errorf("%s: %d %v", tt.name, w.Code, h)
		}
		body := io.Reader(w.Body)
		if tt.pack != "" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != tt.body {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

// TestNotBuilt wants a daemon without the page to say how to build it.
func TestNotBuilt(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	read(fstest.MapFS{"README.md": {}}).serve(w, httptest.NewRequest("GET", "/ui/", nil), "")
	if w.Code != 503 || !strings.Contains(w.Body.String(), "make console") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
