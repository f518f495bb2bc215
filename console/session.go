package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"sandbox/core/fault"
)

// Session is the time from a sign-in in a browser until it signs out, or until the
// session expires.
type Session struct {
	// Sub is the principal that asked for the link.
	Sub       string
	CreatedAt time.Time
	ExpiresAt time.Time // whatever the browser does

	seenAt time.Time // guarded by Sessions.mu
	open   int       // requests under way; guarded by Sessions.mu
	hash   digest
	ended  context.Context
	end    context.CancelFunc
}

// digest is the SHA-256 of a secret.
type digest [sha256.Size]byte

func newSession(r record) *Session {
	s := &Session{Sub: r.Sub, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, seenAt: r.SeenAt, hash: r.Hash}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// live reports whether the session has not expired. One with a request under way is
// not idle.
func (s *Session) live(now time.Time) bool {
	return now.Before(s.ExpiresAt) && (s.open > 0 || now.Before(s.seenAt.Add(Idle)))
}

// ErrEnded is the cause with which the requests of a session end that ends before
// them.
var ErrEnded = errEnded()

func errEnded() error {
	return fault.New(fault.Unauthenticated, "there is no session, or it has ended: run 'sandbox console' and open the link")
}

// secretBytes are the random bytes of a token or of a session's id, and secretLen the
// characters that they are written in.
const (
	secretBytes = 32
	secretLen   = (secretBytes*8 + 5) / 6
)

// newSecret returns a random secret and its digest, which alone is kept.
func newSecret() (string, digest) {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	secret := base64.RawURLEncoding.EncodeToString(random[:])
	return secret, sha256.Sum256([]byte(secret))
}

// CSRF returns the token that the requests of a session must carry beside its cookie.
// It is made of the session's id, so that nothing of it is stored.
func CSRF(id string) string {
	mac := hmac.New(sha256.New, []byte(id))
	mac.Write([]byte("csrf"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// ValidCSRF reports whether token is that of the session with this id.
func ValidCSRF(id, token string) bool { return hmac.Equal([]byte(CSRF(id)), []byte(token)) }
