package engine

import (
	"context"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
)

var errPending = fault.New(fault.Unsupported, "this engine can't do that yet")

func (c *Client) Sweep(context.Context, time.Duration) (core.Swept, error) {
	return core.Swept{}, errPending
}
