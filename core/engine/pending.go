package engine

import (
	"context"
	"io"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
)

var errPending = fault.New(fault.Unsupported, "this engine can't do that yet")

func (c *Client) Attach(context.Context, string, string) (*core.Process, error) {
	return nil, errPending
}

func (c *Client) Execs(context.Context, string) ([]core.ExecRecord, error) { return nil, errPending }

func (c *Client) FindExec(context.Context, string, string) (core.ExecRecord, error) {
	return core.ExecRecord{}, errPending
}

func (c *Client) AwaitExec(context.Context, string, string) (core.ExecRecord, error) {
	return core.ExecRecord{}, errPending
}

func (c *Client) CancelExec(context.Context, string, string, time.Duration) (core.ExecRecord, error) {
	return core.ExecRecord{}, errPending
}

func (c *Client) Sweep(context.Context, time.Duration) (core.Swept, error) {
	return core.Swept{}, errPending
}

func (c *Client) Upload(context.Context, string, core.Upload, io.Reader) (core.Uploaded, error) {
	return core.Uploaded{}, errPending
}

func (c *Client) Download(context.Context, string, string, bool) (*core.Download, error) {
	return nil, errPending
}
