package httpd

import (
	"net/http"

	"sandbox/core/options"
)

// updateBox changes options of a box.
func (s *Server) updateBox(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	if doc == nil {
		doc = []byte("{}") // which changes nothing
	}
	u, err := options.DecodeUpdate(doc)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	rec, err := box.Update(r.Context(), u)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, rec.Info())
}
