package auth

import (
	"slices"
	"time"
)

// Permissions that a key can have.
const (
	Boxes     = "Boxes"                    // create and manage boxes
	LogsQuery = "observability.logs.query" // bound to the key's environment
	LogsWrite = "observability.logs.write" // bound to the key's environment
	Keys      = "Keys"                     // manage keys
)

// Permissions returns all of them.
func Permissions() []string { return []string{Boxes, LogsQuery, LogsWrite, Keys} }

// Kinds of principal.
const (
	ServiceAccount = "service_account" // holds a key
	LocalUser      = "local"           // may use the daemon's Unix socket
)

// Principal is who a request comes from. It is shared by requests and never
// changed.
type Principal struct {
	Sub         string
	Name        string
	Type        string
	Permissions []string
	Environment string
	ExpiresAt   *time.Time // nil for never
}

// Local is the principal of the Unix socket of a server of an environment: the
// file's permissions have let it in, and it may do everything.
func Local(environment string) *Principal {
	return &Principal{
		Sub: LocalUser, Name: LocalUser, Type: LocalUser,
		Permissions: Permissions(), Environment: environment,
	}
}

// May tells whether the principal has a permission; everyone has "".
func (p *Principal) May(permission string) bool {
	return permission == "" || slices.Contains(p.Permissions, permission)
}

// In tells whether the principal's permission counts in an environment: some
// are bound to the key's own.
func (p *Principal) In(permission, environment string) bool {
	return !bound(permission) || p.Type == LocalUser || p.Environment == environment
}

func bound(permission string) bool { return permission == LogsQuery || permission == LogsWrite }

// grants tells whether the principal can give a permission on, in an
// environment: only what it has itself.
func (p *Principal) grants(permission, environment string) bool {
	return p.May(permission) && p.In(permission, environment)
}
