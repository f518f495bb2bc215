package api

import "time"

// Share is a link that lets people without a key reach a port of a box.
type Share struct {
	URL       string    `json:"url"`
	BoxID     string    `json:"box_id"`
	Port      int       `json:"port"`
	ExpiresAt time.Time `json:"expires_at"`
}

// The bounds of how long a link lasts, in seconds, and what it does if nothing is said.
const (
	MaxShareSeconds     = 30 * 24 * 3600
	DefaultShareSeconds = 3600
)
