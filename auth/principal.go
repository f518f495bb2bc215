package auth

import (
	"slices"
	"time"
)

// The permissions that a key can have.
const (
	Boxes     = "Boxes"                    // make and use boxes
	LogsQuery = "observability.logs.query" // counts in the key's environment alone
	LogsWrite = "observability.logs.write" // counts in the key's environment alone
	Keys      = "Keys"                     // make, list and delete keys
)

// Permissions returns all permissions.
func Permissions() []string { return []string{Boxes, LogsQuery, LogsWrite, Keys} }

// The types of a principal.
const (
	ServiceAccount = "service_account" // sent a key
	LocalUser      = "local"           // came through the daemon's Unix socket
)

// Principal is the one that a request comes from. Requests share it: nobody may
// change it.
type Principal struct {
	Sub         string // the key's id, or LocalUser
	Name        string
	Type        string // ServiceAccount or LocalUser
	Permissions []string
	Environment string
	ExpiresAt   *time.Time // nil for never
}

// Local returns the principal of requests through the Unix socket, on a server
// of the given environment. It has all permissions: the mode of the socket's file
// has already decided who may connect.
func Local(environment string) *Principal {
	return &Principal{
		Sub: LocalUser, Name: LocalUser, Type: LocalUser,
		Permissions: Permissions(), Environment: environment,
	}
}

// May reports whether the principal has a permission. Every principal has "".
func (p *Principal) May(permission string) bool {
	return permission == "" || slices.Contains(p.Permissions, permission)
}

// In reports whether the principal's permission counts in an environment. The
// permissions for logs count in the key's own environment alone.
func (p *Principal) In(permission, environment string) bool {
	return !bound(permission) || p.Type == LocalUser || p.Environment == environment
}

func bound(permission string) bool { return permission == LogsQuery || permission == LogsWrite }

// grants reports whether the principal may put a permission into a new key of an
// environment: only if it has that permission there itself.
func (p *Principal) grants(permission, environment string) bool {
	return p.May(permission) && p.In(permission, environment)
}
