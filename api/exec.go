package api

import "time"

// ExecStatus is where a command is in its life.
type ExecStatus string

// What the status of an exec can be. Lost means that the box's init died under
// the command, so that nobody knows its end.
const (
	ExecRunning   ExecStatus = "running"
	ExecSucceeded ExecStatus = "succeeded"
	ExecFailed    ExecStatus = "failed"
	ExecCanceled  ExecStatus = "canceled"
	ExecTimedOut  ExecStatus = "timed_out"
	ExecLost      ExecStatus = "lost"
)

// Reason is why an exec ended.
type Reason string

// The reasons why an exec ended.
const (
	ReasonExited        Reason = "exited"
	ReasonSignaled      Reason = "signaled"
	ReasonCanceled      Reason = "canceled"
	ReasonTimedOut      Reason = "timed_out"
	ReasonOOMKilled     Reason = "oom_killed"
	ReasonBoxStopped    Reason = "box_stopped"
	ReasonNotFound      Reason = "not_found"
	ReasonNotExecutable Reason = "not_executable"
)

// Exec is a command in a box (contract, section 3). What is not set, or not
// known yet, is nil. A box keeps 4 KiB of an ended exec's command and
// environment: what is beyond is left out.
type Exec struct {
	ID          string            `json:"id"`
	BoxID       string            `json:"box_id"`
	Status      ExecStatus        `json:"status"`
	Cmd         []string          `json:"cmd"`
	Env         map[string]string `json:"env,omitzero"` // all that the command has; nil in listings
	WorkingDir  string            `json:"working_dir"`
	User        string            `json:"user"` // of the exec, the box or the image, else root
	TTY         bool              `json:"tty"`
	PID         *int              `json:"pid"`       // in the box; nil if it could not be started
	ExitCode    *int              `json:"exit_code"` // 128+N after death by signal N
	Signal      *int              `json:"signal"`    // N
	Reason      *Reason           `json:"reason"`
	Main        bool              `json:"main,omitzero"` // it is a run of the box's main command
	CreatedAt   time.Time         `json:"created_at"`
	FinishedAt  *time.Time        `json:"finished_at"`
	DurationMS  *int64            `json:"duration_ms"`
	TimeoutMS   *int64            `json:"timeout_ms"`
	StdoutBytes *int64            `json:"stdout_bytes"` // nil where no daemon keeps the output
	StderrBytes *int64            `json:"stderr_bytes"`
}

// ExitStatus is how a command ended, as the box's init tells it.
type ExitStatus struct {
	Status   ExecStatus `json:"status"`
	Reason   Reason     `json:"reason,omitempty"`  // "" of a lost one
	ExitCode int        `json:"exit_code"`         // 128+N after death by signal N
	Signal   int        `json:"signal,omitempty"`  // N, or 0
	Message  string     `json:"message,omitempty"` // of a command that could not be started
	// FinishedAt is when the command's own process ended.
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// Ended returns the exec as it stands after the end s. A lost exec has no exit
// code.
func (e Exec) Ended(s ExitStatus) Exec {
	e.Status = s.Status
	if s.Reason != "" {
		e.Reason = &s.Reason
	}
	if s.Signal != 0 {
		e.Signal = &s.Signal
	}
	if s.Status != ExecLost {
		e.ExitCode = &s.ExitCode
	}
	end := s.FinishedAt.UTC()
	ms := max(0, end.Sub(e.CreatedAt).Milliseconds())
	e.FinishedAt, e.DurationMS = &end, &ms
	return e
}

// Exit returns the end of an exec that has ended, without its message.
func (e Exec) Exit() ExitStatus {
	s := ExitStatus{Status: e.Status}
	if e.Reason != nil {
		s.Reason = *e.Reason
	}
	if e.ExitCode != nil {
		s.ExitCode = *e.ExitCode
	}
	if e.Signal != nil {
		s.Signal = *e.Signal
	}
	if e.FinishedAt != nil {
		s.FinishedAt = *e.FinishedAt
	}
	return s
}

// Written is what a write to the input of an exec has done.
type Written struct {
	Bytes int64 `json:"bytes"` // that the command's pipe has taken
}
