// Package cursor has the places at which pages of lists begin, as clients keep them: a
// token holds all of it, so that a page can follow one whose last entry was removed.
package cursor

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Place is the place of an entry in a list that is ordered by times and ids. The zero
// value is before all of them.
type Place struct {
	At time.Time
	ID string // "" for no entry
}

// String returns the place as a token.
func (p Place) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixNano(), 36) + "." + p.ID))
}

// Parse reads a token; "" is the zero value. It returns false for what String never
// returned.
func Parse(token string) (Place, bool) {
	if token == "" {
		return Place{}, true
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	at, id, found := strings.Cut(string(text), ".")
	nanos, numErr := strconv.ParseInt(at, 36, 64)
	if err != nil || numErr != nil || !found || id == "" {
		return Place{}, false
	}
	return Place{time.Unix(0, nanos), id}, true
}
