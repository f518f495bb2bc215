package engine

import (
	"context"
	"io"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
)

var errPending = fault.New(fault.Unsupported, "this engine can't do that yet")

func (c *Client) Sweep(context.Context, time.Duration) (core.Swept, error) {
	return core.Swept{}, errPending
}

func (c *Client) Upload(context.Context, string, core.Upload, io.Reader) (core.Uploaded, error) {
	return core.Uploaded{}, errPending
}

func (c *Client) Download(context.Context, string, string, bool) (*core.Download, error) {
	return nil, errPending
}
