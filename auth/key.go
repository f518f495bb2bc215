// Package auth keeps the API keys of a home, which say who may use the daemon
// and for what. Only a SHA-256 of a key's secret is stored, so that the files of
// the home let nobody in.
package auth

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sandbox/api"
	"sandbox/core/document"
)

// Key is an API key without its secret, as it is stored.
type Key struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Hash        [32]byte   `json:"hash"` // SHA-256 of the secret
	Mask        string     `json:"mask"` // the secret with all but its ends hidden
	Permissions []string   `json:"permissions"`
	Environment string     `json:"environment"`
	CreatedAt   time.Time  `json:"created_at"`
	LastUsedAt  *time.Time `json:"last_used_at,omitempty"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty"` // nil for never
}

// Request says what a new key shall be.
type Request struct {
	Name        string
	Permissions []string
	Environment string
	ExpiresAt   *time.Time // nil for never
}

const (
	maxNameLen        = 128
	maxEnvironmentLen = 64
)

// Check notes all that is wrong with r in p.
func (r Request) Check(p *document.Problems) {
	n := utf8.RuneCountInString(r.Name)
	p.When(strings.TrimSpace(r.Name) == "" || n > maxNameLen, "name", "length", "must have 1 to %d characters", maxNameLen)
	p.When(!printable(r.Name), "name", "text", "must be printable text")
	p.When(len(r.Permissions) == 0, "permissions", "empty", "must name one or more of %s", strings.Join(api.Permissions(), ", "))
	for i, permission := range r.Permissions {
		p.OneOf(fmt.Sprintf("permissions[%d]", i), permission, api.Permissions()...)
	}
	p.When(!ValidEnvironment(r.Environment), "environment", "name", "must be 1 to %d letters, digits, _, . or -", maxEnvironmentLen)
	p.When(r.ExpiresAt != nil && !r.ExpiresAt.After(time.Now()), "expires_at", "past", "must be in the future")
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ValidEnvironment reports whether s can be the name of an environment: 1 to 64
// letters, digits, _, . or -.
func ValidEnvironment(s string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}
	return s != "" && len(s) <= maxEnvironmentLen && !strings.ContainsFunc(s, odd)
}
