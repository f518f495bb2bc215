package e2b

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/ids"
)

// The headers by which a request names its box and proves that it may.
const (
	boxHeader     = "E2b-Sandbox-Id"
	accessHeader  = "X-Access-Token"
	trafficHeader = "E2b-Traffic-Access-Token"
)

// keyed refuses requests to the control plane without a key that may use boxes.
func (s *Server) keyed(next plain) http.Handler {
	return s.answered(func(w http.ResponseWriter, r *http.Request) error {
		secret := r.Header.Get("X-Api-Key")
		if secret == "" {
			secret = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		if secret == "" {
			return fault.New(fault.Unauthenticated, "no API key: set E2B_API_KEY to a key of this server, which sandbox keys create makes")
		}
		principal, err := s.Keys.Verify(strings.TrimSpace(secret))
		if err != nil {
			return err
		}
		if !principal.May(api.MayUseBoxes) {
			return fault.New(fault.PermissionDenied, "the key lacks the permission %s", api.MayUseBoxes)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxDocument)
		return next(w, r)
	})
}

// entered refuses requests to a box without its token, and to one that does not run.
func (s *Server) entered(next inside) http.Handler {
	return s.answeredInside(func(w http.ResponseWriter, r *http.Request) error {
		box, err := s.enter(r)
		if err != nil {
			return err
		}
		return next(w, r, box)
	})
}

// called does so for calls of Connect, which find the box in their context.
func (s *Server) called(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		box, err := s.enter(r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), boxKey{}, visit{box, r.Header})))
	})
}

type boxKey struct{}

// visit is what a call needs of its request.
type visit struct {
	box    *core.Box
	header http.Header
}

// visitOf returns what called has put into the context.
func visitOf(ctx context.Context) visit { return ctx.Value(boxKey{}).(visit) }

// enter returns the box that a request names and has a token of, if it runs. Errors:
// Unauthenticated; BoxNotFound, also of one that does not run, as SDKs expect.
func (s *Server) enter(r *http.Request) (*core.Box, error) {
	id := boxOf(r)
	if id == "" {
		return nil, fault.New(fault.Unauthenticated, "the request names no sandbox: set E2B_SANDBOX_URL, and the SDK sends %s", boxHeader)
	}
	if !s.admits(r, id) {
		return nil, fault.New(fault.Unauthenticated, "the request has no valid token of sandbox %s", id)
	}
	if r.URL.Path == healthPath { // who asks whether a box runs does not want it to
		return s.running(r.Context(), id)
	}
	return s.awake(r.Context(), id)
}

// awake returns a box that runs, and resumes a paused one whose client wanted requests
// to do so. Errors: those of running.
func (s *Server) awake(ctx context.Context, id string) (*core.Box, error) {
	rec, err := s.Runtime.Find(ctx, id)
	if err == nil && rec.Status == api.Paused && rec.Options.AutoStart {
		if _, err := s.Runtime.At(id).Awake(ctx); err != nil {
			return nil, err
		}
	}
	return s.running(ctx, id)
}

// boxOf returns the id of the box that a request is for: by its header, or by its
// host, which is PORT-ID.DOMAIN. It returns "" where neither names one.
func boxOf(r *http.Request) string {
	id := r.Header.Get(boxHeader)
	if id == "" {
		_, id = hostOf(r.Host)
	}
	if !ids.Box.Valid(id) {
		return ""
	}
	return id
}

// hostOf returns the port and the id in a host of the form PORT-ID.DOMAIN, or "".
func hostOf(host string) (port, id string) {
	label, _, _ := strings.Cut(host, ".")
	port, id, ok := strings.Cut(label, "-")
	if !ok || !ids.Box.Valid(id) {
		return "", ""
	}
	return port, id
}

// admits tells whether a request has a token of the box. The SDK of the code
// interpreter sends one of the two tokens alone, so that either will do.
func (s *Server) admits(r *http.Request, id string) bool {
	return equal(r.Header.Get(accessHeader), s.token("access", id)) || equal(r.Header.Get(trafficHeader), s.token("traffic", id))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// token returns the token of a box for a purpose. It is made anew each time and
// stored nowhere, and nobody without the secret can make it.
func (s *Server) token(purpose, id string) string {
	mac := hmac.New(sha256.New, s.Secret)
	mac.Write([]byte("e2b:" + purpose + ":" + id))
	return hex.EncodeToString(mac.Sum(nil))
}

// running returns a box that runs. Errors: BoxNotFound, also of one that does not.
func (s *Server) running(ctx context.Context, id string) (*core.Box, error) {
	rec, err := s.Runtime.Find(ctx, id)
	if fault.Is(err, fault.BoxNotFound) {
		return nil, fault.New(fault.BoxNotFound, "the sandbox %s was not found", id)
	}
	if err != nil {
		return nil, err
	}
	switch rec.Status {
	case api.Running:
		return s.Runtime.At(id), nil
	case api.Paused:
		return nil, fault.New(fault.BoxNotFound, "the sandbox %s was not found among those that run: it is paused, and Sandbox.connect resumes it", id)
	}
	return nil, fault.New(fault.BoxNotFound, "the sandbox %s was not found among those that run: it is %s", id, rec.Status)
}
