package console

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// dist is what `make console` has built.
//
//go:embed all:dist
var dist embed.FS

const (
	index = "index.html"
	// hashed is the directory of the files whose names change with their content.
	hashed = "assets/"
	// notBuilt is what a daemon answers that was built without the page.
	notBuilt = "The web console is not part of this build. Build it and the daemon with: make console build"
)

// file is one embedded file as it is sent.
type file struct {
	plain, packed []byte // packed with gzip; nil if that does not make it smaller
	mediaType     string
}

// page are files by name.
type page map[string]file

// built are the embedded files. They are packed once, for the first who asks.
var built = sync.OnceValue(func() page {
	files, _ := fs.Sub(dist, "dist") // the name is valid
	return read(files)
})

// read reads and packs files. Reading what is embedded can't fail.
func read(files fs.FS) page {
	p := page{}
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "README.md" {
			return err
		}
		plain, err := fs.ReadFile(files, name)
		p[name] = file{plain, packed(plain), cmp.Or(mediaTypes[path.Ext(name)], "application/octet-stream")}
		return err
	})
	return p
}

func packed(plain []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(plain)                                 // to memory, as Close
	_ = w.Close()
	if b.Len() >= len(plain) {
		return nil
	}
	return b.Bytes()
}

// mediaTypes does not depend on the tables of the host, as package mime does.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/vnd.microsoft.icon", ".woff2": "font/woff2",
	".json": "application/json", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
}

// ServeFile answers with a file of the page, or with the page itself if name is "".
func ServeFile(w http.ResponseWriter, r *http.Request, name string) { built().serve(w, r, name) }

func (p page) serve(w http.ResponseWriter, r *http.Request, name string) {
	f, found := p[cmp.Or(name, index)]
	switch {
	case found:
		if strings.HasPrefix(name, hashed) {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		f.serve(w, r)
	case name == "":
		http.Error(w, notBuilt, http.StatusServiceUnavailable)
	default:
		http.Error(w, "there is no such file", http.StatusNotFound)
	}
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	header, body := w.Header(), f.plain
	header.Set("Content-Type", f.mediaType)
	if f.packed != nil {
		header.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			header.Set("Content-Encoding", "gzip")
			body = f.packed
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

// The policies of what a browser may do with a reply.
const (
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// A reply of the API may be a file of a box, which nobody may run as a part of
	// the page.
	dataPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)

// Secure sets the headers that every reply below /ui has. page tells a file of the
// page from a reply of the API.
func Secure(h http.Header, page bool) {
	h.Set("Content-Security-Policy", dataPolicy)
	if page {
		h.Set("Content-Security-Policy", pagePolicy)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
