package auth

import (
	"slices"
	"time"

	"sandbox/api"
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
		Sub: api.LocalUser, Name: api.LocalUser, Type: api.LocalUser,
		Permissions: api.Permissions(), Environment: environment,
	}
}

// May reports whether the principal has a permission. Every principal has "".
func (p *Principal) May(permission string) bool {
	return permission == "" || slices.Contains(p.Permissions, permission)
}

// In reports whether the principal's permission counts in an environment. The
// permissions for logs count in the key's own environment alone.
func (p *Principal) In(permission, environment string) bool {
	return !bound(permission) || p.Type == api.LocalUser || p.Environment == environment
}

func bound(permission string) bool {
	return permission == api.MayQueryLogs || permission == api.MayWriteLogs
}

// grants reports whether the principal may put a permission into a new key of an
// environment: only if it has that permission there itself.
func (p *Principal) grants(permission, environment string) bool {
	return p.May(permission) && p.In(permission, environment)
}
