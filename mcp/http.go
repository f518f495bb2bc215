package mcp

import (
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Handler returns what answers the requests of one owner over streamable HTTP. The
// sessions of another owner are not there for it. The caller has made sure who asks.
func (s *Server) Handler(owner string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.handlers[owner]
	if h == nil {
		h = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.tools }, &sdk.StreamableHTTPOptions{
			JSONResponse: true, SessionTimeout: s.Idle, MaxRequestBodyBytes: maxArguments,
			// It is for servers that need no key, which a page of another site could call.
			DisableLocalhostProtection: true,
		})
		s.handlers[owner] = h
	}
	return h
}
