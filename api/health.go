package api

// HealthCheck says how it is found out whether the main command of a box works: a
// command is run in the box again and again. 0 and an empty Test mean that a member is
// not set.
type HealthCheck struct {
	// Test is [HealthCommand] and a command, [HealthShell] and a line for /bin/sh -c, or
	// [HealthNone] alone.
	Test            []string `json:"test,omitempty"`
	IntervalMS      int64    `json:"interval_ms,omitempty"`       // between the end of a check and the next one
	TimeoutMS       int64    `json:"timeout_ms,omitempty"`        // of one check; then it has failed
	StartPeriodMS   int64    `json:"start_period_ms,omitempty"`   // from the start of the command; until then no failure counts
	StartIntervalMS int64    `json:"start_interval_ms,omitempty"` // as IntervalMS, within the start period
	Retries         int      `json:"retries,omitempty"`           // how many checks fail one after another until the command is unhealthy
}

// What the test of a [HealthCheck] begins with.
const (
	HealthNone    = "NONE" // there is no check, whatever the image says
	HealthCommand = "CMD"
	HealthShell   = "CMD-SHELL"
)
