package wire

import (
	"fmt"
	"slices"

	"sandbox/api"
)

// Supervise says what the main command of a box is and what becomes of it when it has
// ended. An init that has one already goes on with that.
type Supervise struct {
	Cmd         []string         `json:"cmd"`
	Restart     api.Restart      `json:"restart"`                // one of its words
	MaxRestarts int              `json:"max_restarts,omitempty"` // after failures; 0: no bound
	StopSignal  int              `json:"stop_signal,omitempty"`  // in place of SIGTERM, for its own process; 0: SIGTERM
	Health      *api.HealthCheck `json:"health,omitempty"`       // with all members set; nil for none
}

// Main is how a box's main command is doing.
type Main struct {
	Command api.CommandState `json:"command"`
	Health  *api.HealthState `json:"health,omitempty"` // nil without a check, and while the command does not run
}

// MaxHealthOutput is how many bytes of the output of a health check are kept.
const MaxHealthOutput = 4096

// Check refuses what no honest init sends. Errors: ErrProtocol.
func (m Main) Check() error {
	known := slices.Contains([]api.CommandStatus{api.CommandRunning, api.CommandWaiting, api.CommandEnded}, m.Command.Status)
	if !known {
		return fmt.Errorf("%w: a main command that is %.40q", ErrProtocol, m.Command.Status)
	}
	if m.Health == nil {
		return nil
	}
	known = slices.Contains([]api.HealthStatus{api.HealthStarting, api.Healthy, api.Unhealthy}, m.Health.Status)
	if !known || len(m.Health.Output) > 3*MaxHealthOutput { // U+FFFD may stand for each byte
		return fmt.Errorf("%w: a health that is %.40q", ErrProtocol, m.Health.Status)
	}
	return nil
}
