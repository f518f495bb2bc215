package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/core/options"
)

// leaving are boxes whose caller leaves when a command has just started.
type leaving struct {
	inProcess
	leave   context.CancelFunc
	command *started
}

func (b leaving) Run(context.Context, string, options.Exec) (backend.Command, error) {
	b.leave()
	return b.command, nil
}

func (b leaving) Exec(ctx context.Context, _, _ string) (api.Exec, error) {
	return api.Exec{}, ctx.Err()
}

// started is a command that notes what becomes of it.
type started struct {
	backend.Command
	did []string
}

func (c *started) ID() string { return "exec" }

func (c *started) Cancel(ctx context.Context, _ time.Duration) error {
	if ctx.Err() == nil {
		c.did = append(c.did, "cancel")
	}
	return ctx.Err()
}

func (c *started) Close() error {
	c.did = append(c.did, "close")
	return nil
}

// TestToolLeavesNoCommand cancels the call of a tool between the start of its command
// and the record of its output.
func TestToolLeavesNoCommand(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	command := &started{}
	boxes := toolBoxes{
		inProcess: leaving{leave: leave, command: command},
		lines:     func(api.Exec) (func(bool, []byte), func()) { return func(bool, []byte) {}, func() {} },
	}
	_, err := boxes.Run(ctx, "box", options.Exec{})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Run returns %v, want that it was canceled", err)
	}
	if len(command.did) != 2 || command.did[0] != "cancel" || command.did[1] != "close" {
		t.Errorf("the command got %v, want a cancel and a close", command.did)
	}
}
