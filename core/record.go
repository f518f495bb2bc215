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
	// FinishedAt is when the command's own process ended.
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// ExecRecord is what is known of an exec, as JSON shows it (contract, section
// 3). What is not set is null. A box keeps 4 KiB of
// an ended exec's command and environment: what is beyond is left out.
type ExecRecord struct {
	ID         string            `json:"id"`
	BoxID      string            `json:"box_id"`
	Status     ExecState         `json:"status"`
	Cmd        []string          `json:"cmd"`
	Env        map[string]string `json:"env,omitzero"` // all that the command has; nil in listings
	WorkingDir string            `json:"working_dir"`
	User       string            `json:"user"` // of the exec, the box or the image, else root
	TTY        bool              `json:"tty"`
	PID        *int              `json:"pid"` // in the box; null if it could not be started
	ExitCode   *int              `json:"exit_code"`
	Signal     *int              `json:"signal"`
	Reason     *string           `json:"reason"`
	CreatedAt  time.Time         `json:"created_at"`
	FinishedAt *time.Time        `json:"finished_at"`
	DurationMS *int64            `json:"duration_ms"`
	TimeoutMS  *int64            `json:"timeout_ms"`
}

// Ended returns the record as it stands after the end s. A lost exec has no exit
// code.
func (r ExecRecord) Ended(s ExecStatus) ExecRecord {
	r.Status, r.Reason, r.Signal = s.State, orNull(s.Reason), orNull(s.Signal)
	if s.State != ExecLost {
		r.ExitCode = &s.ExitCode
	}
	end := s.FinishedAt.UTC()
	ms := max(0, end.Sub(r.CreatedAt).Milliseconds())
	r.FinishedAt, r.DurationMS = &end, &ms
	return r
}
