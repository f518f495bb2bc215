package api

// Restart says when the main command of a box is started again.
type Restart string

// What [Restart] can be. A number may stand behind RestartOnFailure, as in on-failure:3:
// that often at most.
const (
	RestartNo        Restart = "no"
	RestartOnFailure Restart = "on-failure" // it ended with another exit code than 0
	RestartAlways    Restart = "always"
)

// CommandStatus is where the main command of a box is in its life.
type CommandStatus string

// What the status of a main command can be.
const (
	CommandRunning CommandStatus = "running"
	CommandWaiting CommandStatus = "waiting" // it has ended and is started again in a while
	CommandEnded   CommandStatus = "ended"   // it is not started again before the box is
)

// CommandState is how the main command of a box is doing.
type CommandState struct {
	Status   CommandStatus `json:"status"`
	ExecID   string        `json:"exec_id"`   // of its last run; "" if that could not even begin
	Restarts int           `json:"restarts"`  // how often it was started again since the box was started
	ExitCode *int          `json:"exit_code"` // of its last end; nil before the first one
}

// HealthStatus says whether the main command of a box works.
type HealthStatus string

// What a [HealthStatus] can be.
const (
	HealthStarting HealthStatus = "starting" // no check has succeeded yet, and not too many have failed
	Healthy        HealthStatus = "healthy"
	Unhealthy      HealthStatus = "unhealthy"
)

// HealthState is what the health checks of a box have found.
type HealthState struct {
	Status        HealthStatus `json:"status"`
	FailingStreak int          `json:"failing_streak"` // how many checks have failed one after another
	ExitCode      *int         `json:"exit_code"`      // of the last check; 128+N of one that was ended by signal N, as for its time; nil before the first one
	Output        string       `json:"output"`         // of the last check: its first 4096 bytes
}
