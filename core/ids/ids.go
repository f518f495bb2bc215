// Package ids makes and checks the ids of boxes, execs, keys and contexts: a prefix that
// names the kind, and 20 random characters of lower-case base32 (RFC 4648),
// which are 100 bits. Ids are names of files, cgroups and interfaces, so what
// comes from outside must be checked with [Kind.Valid] before it is used.
package ids

import (
	"crypto/rand"
	"strings"
)

// Kind is what an id names; its text is the prefix of the kind's ids.
type Kind string

// The kinds of ids.
const (
	Box     Kind = "box_"
	Exec    Kind = "exec_"
	Key     Kind = "key_"
	Context Kind = "ctx_"
)

const (
	alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	length   = 20 // of what is behind the prefix
)

// New returns an id that no other has.
func (k Kind) New() string { return string(k) + strings.ToLower(rand.Text()[:length]) }

// Valid tells whether id can be one of this kind.
func (k Kind) Valid(id string) bool {
	rest, ok := strings.CutPrefix(id, string(k))
	return ok && len(rest) == length && strings.Trim(rest, alphabet) == ""
}

// Prefixes tells whether text begins as ids of this kind do.
func (k Kind) Prefixes(text string) bool { return strings.HasPrefix(text, string(k)) }
