package httpd

import "net/http"

// health answers ok as long as the server answers at all.
func (s *Server) health(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}
