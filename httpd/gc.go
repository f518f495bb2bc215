package httpd

import (
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core/document"
)

// maxAge is the largest older_than_seconds: a hundred years.
const maxAge = 100 * 365 * 24 * 60 * 60

// collect removes the boxes that have not run for a while, and what a crash left
// behind.
func (s *Server) collect(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	var body struct {
		OlderThan *int `json:"older_than_seconds"`
	}
	if doc != nil {
		if err := document.Read(doc, &body); err != nil {
			return err
		}
	}
	seconds := 0
	if body.OlderThan != nil {
		seconds = *body.OlderThan
	}
	if err := within("older_than_seconds", seconds, 0, maxAge); err != nil {
		return err
	}
	swept, err := s.Runtime.Sweep(r.Context(), time.Duration(seconds)*time.Second)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, api.Collected{Removed: len(swept.Boxes), ReclaimedBytes: swept.Bytes, Boxes: swept.Boxes})
}
