package httpd

import (
	"net/http"
	"time"

	"sandbox/auth"
)

// identity is the reply that tells a client its principal.
type identity struct {
	Sub           string     `json:"sub"`
	Name          string     `json:"name"`
	PrincipalType string     `json:"principal_type"`
	PathPrefix    *string    `json:"path_prefix"`
	Permissions   []string   `json:"permissions"`
	Environment   string     `json:"environment"`
	ExpiresAt     *time.Time `json:"expires_at"`
}

func (s *Server) me(w http.ResponseWriter, r *request) error {
	return writeJSON(w, http.StatusOK, s.identity(r.principal))
}

func (s *Server) identity(p *auth.Principal) identity {
	i := identity{
		Sub: p.Sub, Name: p.Name, PrincipalType: p.Type,
		Permissions: p.Permissions, Environment: p.Environment, ExpiresAt: p.ExpiresAt,
	}
	if s.Prefix != "" {
		i.PathPrefix = &s.Prefix
	}
	return i
}
