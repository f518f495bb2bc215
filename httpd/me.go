package httpd

import (
	"net/http"

	"sandbox/api"
	"sandbox/auth"
)

func (s *Server) me(w http.ResponseWriter, r *request) error {
	return writeJSON(w, http.StatusOK, s.identity(r.principal))
}

func (s *Server) identity(p *auth.Principal) api.Identity {
	i := api.Identity{
		Sub: p.Sub, Name: p.Name, PrincipalType: p.Type,
		Permissions: p.Permissions, Environment: p.Environment, ExpiresAt: p.ExpiresAt,
	}
	if s.Prefix != "" {
		i.PathPrefix = &s.Prefix
	}
	return i
}
