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
	Key         string     `json:"key"` // masked
	Permissions []string   `json:"permissions"`
	Environment string     `json:"environment"`
	CreatedAt   time.Time  `json:"created_at"`
	LastUsedAt  *time.Time `json:"last_used_at"`
	ExpiresAt   *time.Time `json:"expires_at"`
	// Secret is the full key. It is told once, when the key is made.
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
