package core

import (
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Record is what the engine knows of a box.
type Record struct {
	ID        string        `json:"id"`
	Options   options.Box   `json:"options"`
	ImageID   string        `json:"image_id,omitempty"`
	Status    api.BoxStatus `json:"state"`
	Reason    string        `json:"reason,omitempty"` // why it is stopped or failed
	PID       int           `json:"pid,omitempty"`    // process id of its init, on the host
	Error     *api.Failure  `json:"error,omitempty"`
	CreatedAt time.Time     `json:"created_at"`
	UpdatedAt time.Time     `json:"updated_at"`
	StartedAt *time.Time    `json:"started_at,omitempty"`
	StoppedAt *time.Time    `json:"stopped_at,omitempty"`
	PausedAt  *time.Time    `json:"paused_at,omitempty"`  // nil unless it is paused
	ExpiresAt *time.Time    `json:"expires_at,omitempty"` // nil unless it is up and has a time
	// UnenforcedLimits says that the box has no cgroups, so that init alone watches over its limits.
	UnenforcedLimits bool `json:"unenforced_limits,omitzero"`
	// Command is how the main command is doing, or how it has ended; nil for none.
	Command *api.CommandState `json:"command,omitempty"`
	Health  *api.HealthState  `json:"health,omitempty"` // nil unless the command runs and has a check
}

// Timed reports whether the box needs the shim of its home although nobody asks for
// anything: it ends at a time, or when it has not been used for long, or has a main
// command, whose output the shim keeps.
func (r Record) Timed() bool {
	return r.Status.Up() && len(r.Options.Command) > 0 || r.Status.Up() && r.ExpiresAt != nil || r.Status == api.Running && r.Options.IdleSeconds > 0
}

// NotRunning returns the failure of a request that needs the box to run, which says
// what to do first: InvalidState.
func (r Record) NotRunning() error {
	if r.Status == api.Paused {
		return fault.New(fault.InvalidState, "box %s is paused: resume it", r.ID)
	}
	return fault.New(fault.InvalidState, "box %s is %s: start it first", r.ID, r.Status)
}
