package core

import (
	"time"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// State is where a box is in its life: created -> running <-> stopped, or failed.
type State string

// The states of a box.
const (
	Created State = "created"
	Running State = "running"
	Stopped State = "stopped"
	Failed  State = "failed"
)

// Record is what is known of a box.
type Record struct {
	ID        string      `json:"id"`
	Options   options.Box `json:"options"`
	ImageID   string      `json:"image_id,omitempty"`
	State     State       `json:"state"`
	Reason    string      `json:"reason,omitempty"` // why it is stopped or failed
	PID       int         `json:"pid,omitempty"`    // of its init, on the host
	Error     *Failure    `json:"error,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
	StartedAt *time.Time  `json:"started_at,omitempty"`
	StoppedAt *time.Time  `json:"stopped_at,omitempty"`
}

// Failure is a failure that a record keeps.
type Failure struct {
	Code    fault.Kind `json:"code"`
	Message string     `json:"message"`
}

// ExecState is where a command is in its life.
type ExecState string

// The states of an exec. Lost means that the box's init died under it.
const (
	ExecRunning   ExecState = "running"
	ExecSucceeded ExecState = "succeeded"
	ExecFailed    ExecState = "failed"
	ExecCanceled  ExecState = "canceled"
	ExecTimedOut  ExecState = "timed_out"
	ExecLost      ExecState = "lost"
)

// Reasons why an exec ended.
const (
	ReasonExited        = "exited"
	ReasonSignaled      = "signaled"
	ReasonCanceled      = "canceled"
	ReasonTimedOut      = "timed_out"
	ReasonOOMKilled     = "oom_killed"
	ReasonBoxStopped    = "box_stopped"
	ReasonNotFound      = "not_found"
	ReasonNotExecutable = "not_executable"
)

// ExecStatus is how an exec stands or ended.
type ExecStatus struct {
	State    ExecState `json:"status"`
	Reason   string    `json:"reason,omitempty"`
	ExitCode int       `json:"exit_code"`         // 128+N after death by signal N
	Signal   int       `json:"signal,omitempty"`  // N, or 0
	Message  string    `json:"message,omitempty"` // of a command that could not be started
}
