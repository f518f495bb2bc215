package cli

import (
	"time"

	"sandbox/api"
)

// capture keeps a command's output for what run and exec print with -o json,
// once the command has ended.
type capture struct {
	api.Capture
	start time.Time
}

func (c *capture) result(status api.ExitStatus) api.RunResult {
	r := c.Result(status)
	r.DurationMS = time.Since(c.start).Milliseconds()
	return r
}
