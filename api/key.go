package api

import "time"

// The permissions that a key can have.
const (
	MayUseBoxes  = "Boxes"                    // make and use boxes
	MayQueryLogs = "observability.logs.query" // counts in the key's environment alone
	MayWriteLogs = "observability.logs.write" // counts in the key's environment alone
	MayUseKeys   = "Keys"                     // make, list and delete keys
)

// Permissions returns all permissions.
func Permissions() []string { return []string{MayUseBoxes, MayQueryLogs, MayWriteLogs, MayUseKeys} }

// The types of a principal: the one that a request comes from.
const (
	ServiceAccount = "service_account" // sent a key
	LocalUser      = "local"           // came through the daemon's Unix socket
)

// Key is an API key.
type Key struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Key         string     `json:"key"` // masked; the full key where it was just made, which is told once
	Permissions []string   `json:"permissions"`
	Environment string     `json:"environment"`
	CreatedAt   time.Time  `json:"created_at"`
	LastUsedAt  *time.Time `json:"last_used_at"`
	ExpiresAt   *time.Time `json:"expires_at"`
	// Masked is the key's beginning and end, and Secret an alias of Key. Both are
	// set only where the key was just made.
	Masked string `json:"masked,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// Identity is who the server takes a client for.
type Identity struct {
	Sub           string     `json:"sub"`
	Name          string     `json:"name"`
	PrincipalType string     `json:"principal_type"` // ServiceAccount or LocalUser
	PathPrefix    *string    `json:"path_prefix"`
	Permissions   []string   `json:"permissions"`
	Environment   string     `json:"environment"`
	ExpiresAt     *time.Time `json:"expires_at"`
}
