package httpd

import (
	"net/http"
	"sync"

	"sandbox/core/fault"
	"sandbox/docs"
	"sandbox/httpd/reference"
)

// openapi replies with the OpenAPI document.
func (s *Server) openapi(w http.ResponseWriter, _ *request) error {
	writePieces(w, http.StatusOK, []string{"application/yaml"}, docs.OpenAPI)
	return nil
}

// referencePage is made once, for the first who asks.
var referencePage = sync.OnceValues(func() ([]byte, error) { return reference.Page(docs.OpenAPI) })

// reference replies with the page that is made of the OpenAPI document.
func (s *Server) reference(w http.ResponseWriter, _ *request) error {
	text, err := referencePage()
	if err != nil {
		return fault.Wrap(fault.Internal, err, "make the reference page")
	}
	header := w.Header()
	header.Set("Content-Security-Policy", reference.Policy())
	header.Set("X-Content-Type-Options", "nosniff")
	writePieces(w, http.StatusOK, []string{"text/html; charset=utf-8"}, text)
	return nil
}
