// Package share makes and checks the links that let people without a key reach one
// port of one box for a time. A link has a token, which is signed: nothing is stored
// but the secret that signs.
package share

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"sandbox/core/fault"
	"sandbox/core/ids"
	"sandbox/core/options"
	"sandbox/core/store"
)

// Grant is what a token allows.
type Grant struct {
	Box   string // its full id
	Port  int
	Until time.Time
}

// Signer signs tokens and checks them. It is safe for concurrent use.
type Signer struct{ secret []byte }

// stored is the file that holds the secret.
type stored struct {
	Secret []byte `json:"secret"`
}

// fileKey is the name of that file without its end.
const fileKey = "share"

// secretLen is the length of the secret in bytes.
const secretLen = 32

// Open returns the signer whose secret is in a directory, and makes the secret if there
// is none. A damaged one is set aside, which ends all links. Errors: Storage.
func Open(dir string, log *slog.Logger) (*Signer, error) {
	file := store.Dir[stored]{Path: dir}
	kept, err := file.Get(fileKey)
	if err == nil && len(kept.Secret) == secretLen {
		return &Signer{kept.Secret}, nil
	}
	if err == nil || errors.Is(err, store.ErrDamaged) {
		aside, failed := file.SetAside(fileKey)
		log.Error("the damaged secret of shared links was set aside, and all links have ended", "file", aside, "error", failed)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := &Signer{make([]byte, secretLen)}
	_, _ = rand.Read(s.secret) // it never fails
	return s, file.Put(fileKey, stored{s.secret}, true)
}

// Sign returns the token of a grant, which ends with a whole second: PORT-BOX-END-
// and the signature, where BOX is the id without its prefix.
func (s *Signer) Sign(g Grant) string {
	text := strings.Join([]string{strconv.Itoa(g.Port), strings.TrimPrefix(g.Box, string(ids.Box)), strconv.FormatInt(g.Until.Unix(), 10)}, "-")
	return text + "-" + s.signature(text)
}

func (s *Signer) signature(text string) string {
	mac := hmac.New(sha256.New, s.secret)
	_, _ = mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Check returns what a token allows now. Errors: PermissionDenied (it is not one of
// ours, or it has ended).
func (s *Signer) Check(token string, now time.Time) (Grant, error) {
	parts := strings.SplitN(token, "-", 4)
	if len(parts) != 4 || !hmac.Equal([]byte(parts[3]), []byte(s.signature(strings.Join(parts[:3], "-")))) {
		return Grant{}, fault.New(fault.PermissionDenied, "this link is not valid: it was changed or is not whole")
	}
	port, badPort := strconv.Atoi(parts[0])
	end, badEnd := strconv.ParseInt(parts[2], 10, 64)
	g := Grant{Box: string(ids.Box) + parts[1], Port: port, Until: time.Unix(end, 0)}
	if err := errors.Join(badPort, badEnd, options.CheckPort(port)); err != nil || !ids.Box.Valid(g.Box) {
		return Grant{}, fault.Wrap(fault.Internal, err, "a link of ours for no port of a box")
	}
	if !now.Before(g.Until) {
		return Grant{}, Ended()
	}
	return g, nil
}

// Ended returns the failure of a link whose time has passed.
func Ended() error {
	return fault.New(fault.PermissionDenied, "this link has ended: ask the one who sent it for a new one")
}
