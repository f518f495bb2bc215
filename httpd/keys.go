package httpd

import (
	"fmt"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/auth"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// viewKey shows a key; secret is empty but where it was just made.
func viewKey(k auth.Key, secret string) api.Key {
	return api.Key{
		ID: k.ID, Name: k.Name, Key: k.Mask, Permissions: k.Permissions, Environment: k.Environment,
		CreatedAt: k.CreatedAt, LastUsedAt: k.LastUsedAt, ExpiresAt: k.ExpiresAt, Secret: secret,
	}
}

func (s *Server) listKeys(w http.ResponseWriter, _ *request) error {
	views := []api.Key{}
	for _, k := range s.Keys.List() {
		views = append(views, viewKey(k, ""))
	}
	return writeJSON(w, http.StatusOK, map[string]any{"keys": views})
}

// keyDocument is the body of a create.
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
	k, secret, err := s.Keys.Create(r.principal, req)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store") // the only reply that holds a secret
	return writeJSON(w, http.StatusCreated, viewKey(k, secret))
}

// decodeKey reads the body of a create. What is missing or of a wrong type is
// Malformed, a date that is none InvalidArgument.
func (s *Server) decodeKey(doc []byte) (auth.Request, error) {
	var d keyDocument
	if err := options.Strict(doc, &d); err != nil {
		return auth.Request{}, err
	}
	if fields := d.missing(); fields != nil {
		return auth.Request{}, &fault.Error{Kind: fault.Malformed, Message: fields[0].Field + " " + fields[0].Message, Fields: fields}
	}
	req := auth.Request{Name: *d.Name, Environment: s.Environment}
	for _, p := range *d.Permissions {
		req.Permissions = append(req.Permissions, *p)
	}
	if d.Environment != nil {
		req.Environment = *d.Environment
	}
	if d.ExpiresAt != nil {
		at, err := time.Parse(time.RFC3339, *d.ExpiresAt)
		if err != nil {
			return req, invalid("expires_at", "format", "must be a date as 2030-01-31T00:00:00Z")
		}
		at = at.UTC()
		req.ExpiresAt = &at
	}
	return req, nil
}

func (d *keyDocument) missing() []fault.Field {
	var fields []fault.Field
	if d.Name == nil {
		fields = append(fields, fault.Field{Field: "name", Code: "required", Message: "is missing"})
	}
	if d.Permissions == nil {
		return append(fields, fault.Field{Field: "permissions", Code: "required", Message: "is missing"})
	}
	for i, p := range *d.Permissions {
		if p == nil {
			fields = append(fields, fault.Field{Field: fmt.Sprintf("permissions[%d]", i), Code: "type", Message: "must be a string"})
		}
	}
	return fields
}

// invalid is the failure of one value.
func invalid(field, code, message string) error {
	return &fault.Error{
		Kind: fault.InvalidArgument, Message: field + " " + message,
		Fields: []fault.Field{{Field: field, Code: code, Message: message}},
	}
}

func (s *Server) deleteKey(w http.ResponseWriter, r *request) error {
	if err := s.Keys.Delete(r.param("id")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
}
