package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/mcp"
)

// newTools makes the server of tools for language models, if one is configured.
func (s *Server) newTools() (err error) {
	if s.Tools == nil {
		return nil
	}
	c := *s.Tools
	c.Logs, c.Log = s.queryForTool, s.Log
	s.mcp, err = mcp.New(c)
	return err
}

// caller is the key of a context under which the request stands that a session of
// tools began with. All requests of a session come from one principal.
type caller struct{}

// serveTools answers a request of the Model Context Protocol. What goes wrong in the
// protocol itself is answered as the protocol says.
func (s *Server) serveTools(w http.ResponseWriter, r *request) error {
	if s.mcp == nil {
		return fault.New(fault.Unavailable, "this server has no tools for language models")
	}
	ctx := context.WithValue(r.Context(), caller{}, r)
	s.mcp.Handler(r.principal.Sub).ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// queryForTool answers a log query of a tool, as the route for queries does.
func (s *Server) queryForTool(ctx context.Context, sql string, parameters map[string]any) (json.RawMessage, error) {
	r, ok := ctx.Value(caller{}).(*request)
	if !ok {
		return nil, fault.New(fault.Internal, "a call of a tool without a request")
	}
	if err := s.permitted(r, api.MayQueryLogs); err != nil {
		return nil, err
	}
	if err := s.admit(nil, r); err != nil {
		return nil, err
	}
	if parameters == nil {
		parameters = map[string]any{}
	}
	doc, err := encode(map[string]any{"sql": sql, "parameters": parameters})
	if err != nil {
		return nil, err
	}
	result, err := s.Logs.Query(ctx, doc)
	defer result.Free()
	if err != nil {
		return nil, err
	}
	pieces, err := result.Document()
	return bytes.Join(pieces, nil), fault.Wrap(fault.Internal, err, "encode the result")
}
