package e2b

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
)

// signed admits requests with a token of their box, and those with a signature that
// its token has made: links for people who have none.
func (s *Server) signed(operation string, next inside) http.HandlerFunc {
	handler := s.answeredInside(func(w http.ResponseWriter, r *http.Request) error {
		box, err := s.enterBy(r, operation)
		if err != nil {
			return err
		}
		return next(w, r, box)
	})
	return handler.ServeHTTP
}

// enterBy returns the box of a request for a file. Errors: those of enter.
func (s *Server) enterBy(r *http.Request, operation string) (*core.Box, error) {
	query := r.URL.Query()
	if !query.Has("signature") {
		return s.enter(r)
	}
	if end := query.Get("signature_expiration"); end != "" {
		seconds, err := strconv.ParseInt(end, 10, 64)
		if err != nil || time.Now().Unix() > seconds {
			return nil, fault.New(fault.Unauthenticated, "the signature is no longer valid")
		}
	}
	id, err := s.signer(r.Context(), boxOf(r), query, operation)
	if err != nil {
		return nil, err
	}
	return s.awake(r.Context(), id)
}

// signer returns the id of the box whose token has made a signature. An SDK whose
// sandboxes are all at one address leaves the id out of its links: then any box can be
// the one. Errors: Unauthenticated.
func (s *Server) signer(ctx context.Context, id string, query url.Values, operation string) (string, error) {
	candidates := []string{id}
	if id == "" {
		recs, err := s.Runtime.List(ctx)
		if err != nil {
			return "", err
		}
		candidates = nil
		for _, rec := range recs {
			candidates = append(candidates, rec.ID)
		}
	}
	for _, id := range candidates {
		if equal(query.Get("signature"), signature(query, operation, s.token("access", id))) {
			return id, nil
		}
	}
	return "", fault.New(fault.Unauthenticated, "the signature is not valid")
}

// signature returns the signature that a link has, for an operation, with a token.
func signature(query url.Values, operation, token string) string {
	text := query.Get("path") + ":" + operation + ":" + query.Get("username") + ":" + token
	if end := query.Get("signature_expiration"); end != "" {
		text += ":" + end
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}
