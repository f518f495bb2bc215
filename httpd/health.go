package httpd

import "net/http"

// health answers as long as the server does.
func (s *Server) health(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}
