package httpd

import (
	"fmt"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/core/document"
	"sandbox/core/fault"
)

// viewKey returns a key as clients see it, masked.
func viewKey(k auth.Key) api.Key {
	return api.Key{
		ID: k.ID, Name: k.Name, Key: k.Mask, Permissions: k.Permissions, Environment: k.Environment,
		CreatedAt: k.CreatedAt, LastUsedAt: k.LastUsedAt, ExpiresAt: k.ExpiresAt,
	}
}

// viewNewKey returns a key that was just made, with the full secret.
func viewNewKey(k auth.Key, secret string) api.Key {
	view := viewKey(k)
	view.Key, view.Masked, view.Secret = secret, k.Mask, secret
	return view
}

func (s *Server) listKeys(w http.ResponseWriter, _ *request) error {
	views := []api.Key{}
	for _, k := range s.Keys.List() {
		views = append(views, viewKey(k))
	}
	return writeJSON(w, http.StatusOK, map[string]any{"keys": views})
}

// keyDocument is the body of a request that creates a key.
type keyDocument struct {
	Name        *string    `json:"name"`
	Permissions *[]*string `json:"permissions"`
	Environment *string    `json:"environment"`
	ExpiresAt   *string    `json:"expires_at"`
}

func (s *Server) createKey(w http.ResponseWriter, r *request) error {
	doc, err := r.document(w, maxBody)
	if err != nil {
		return err
	}
	req, err := s.decodeKey(doc)
	if err != nil {
		return err
	}
	k, secret, err := s.Keys.Create(r.Context(), r.principal, req)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store") // the only reply that holds a secret
	return writeJSON(w, http.StatusCreated, viewNewKey(k, secret))
}

// decodeKey reads the body of a request that creates a key. Errors: Malformed,
// InvalidArgument, with fields.
func (s *Server) decodeKey(doc []byte) (auth.Request, error) {
	var d keyDocument
	var p document.Problems
	if err := p.Read(doc, &d, document.MaxSize); err != nil {
		return auth.Request{}, err
	}
	p.Required("name", d.Name != nil)
	p.Required("permissions", d.Permissions != nil)
	req := auth.Request{Environment: s.Environment}
	if d.Name != nil {
		req.Name = *d.Name
	}
	if d.Permissions != nil {
		req.Permissions = permissions(*d.Permissions, &p)
	}
	if d.Environment != nil {
		req.Environment = *d.Environment
	}
	if d.ExpiresAt != nil {
		at, err := time.Parse(time.RFC3339, *d.ExpiresAt)
		if err != nil { // a date without a time is midnight UTC
			at, err = time.Parse(time.DateOnly, *d.ExpiresAt)
		}
		p.When(err != nil, "expires_at", "format", "must be a date such as 2030-01-31, or with a time such as 2030-01-31T00:00:00Z")
		if at = at.UTC(); err == nil {
			req.ExpiresAt = &at
		}
	}
	req.Check(&p)
	return req, p.Err(fault.InvalidArgument)
}

// permissions returns the members of a list, none of which may be null.
func permissions(list []*string, p *document.Problems) (all []string) {
	for i, name := range list {
		p.Unread(name == nil, fmt.Sprintf("permissions[%d]", i), "type", "must be a string")
		if name == nil {
			name = new(string)
		}
		all = append(all, *name)
	}
	return all
}

func (s *Server) deleteKey(w http.ResponseWriter, r *request) error {
	if err := s.Keys.Delete(r.Context(), r.param("id")); err != nil {
		return err
	}
	if s.Console != nil {
		_ = s.Console.EndAll(r.param("id")) // those that stay on disk are refused: their key is gone
	}
	return writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}
