// Package auth keeps the API keys of a home, which say who may use the daemon
// and for what. Only a SHA-256 of a key's secret is stored, so that the files of
// the home let nobody in.
package auth

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sandbox/api"
	"sandbox/core/fault"
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

// check returns one error that names all wrong fields of r. Errors:
// InvalidArgument.
func (r Request) check(now time.Time) error {
	var fields []fault.Field
	when := func(bad bool, field, code, message string) {
		if bad {
			fields = append(fields, fault.Field{Field: field, Code: code, Message: message})
		}
	}
	n := utf8.RuneCountInString(r.Name)
	when(strings.TrimSpace(r.Name) == "" || n > maxNameLen, "name", "length", fmt.Sprintf("must have 1 to %d characters", maxNameLen))
	when(!printable(r.Name), "name", "text", "must be printable text")
	when(len(r.Permissions) == 0, "permissions", "empty", "must name one or more of "+strings.Join(api.Permissions(), ", "))
	for i, p := range r.Permissions {
		when(!slices.Contains(api.Permissions(), p), fmt.Sprintf("permissions[%d]", i), "value", fmt.Sprintf("is %q and must be one of %s", p, strings.Join(api.Permissions(), ", ")))
	}
	when(!ValidEnvironment(r.Environment), "environment", "name", fmt.Sprintf("must be 1 to %d letters, digits, _, . or -", maxEnvironmentLen))
	when(r.ExpiresAt != nil && !r.ExpiresAt.After(now), "expires_at", "past", "must lie in the future")
	if fields == nil {
		return nil
	}
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Field + " " + f.Message
	}
	return &fault.Error{Kind: fault.InvalidArgument, Message: strings.Join(parts, "; "), Fields: fields}
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
