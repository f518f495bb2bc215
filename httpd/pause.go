package httpd

import (
	"net/http"

	"sandbox/core/document"
)

// pauseBox has the processes of a box stand still.
func (s *Server) pauseBox(w http.ResponseWriter, r *request) error {
	reclaim, err := r.reclaim(w)
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	rec, err := box.Pause(r.Context(), reclaim)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, rec.Info())
}

// reclaim reads the body of a pause, which may be left out.
func (r *request) reclaim(w http.ResponseWriter) (bool, error) {
	doc, err := r.document(w, maxBody)
	if err != nil || doc == nil {
		return false, err
	}
	var body struct {
		Reclaim *bool `json:"reclaim"`
	}
	err = document.Read(doc, &body)
	return body.Reclaim != nil && *body.Reclaim, err
}

// resumeBox lets the processes of a paused box go on.
func (s *Server) resumeBox(w http.ResponseWriter, r *request) error {
	box, err := s.box(r)
	if err != nil {
		return err
	}
	rec, err := box.Resume(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, rec.Info())
}
