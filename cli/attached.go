package cli

import (
	"context"
	"fmt"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// cancelGrace is the time between SIGTERM and SIGKILL for a command that is ended.
const cancelGrace = 2 * time.Second

// joining says which command to join, and how.
type joining struct {
	options.Exec                                     // its terminal and its input
	start        func(options.Exec) (command, error) // starts the command, or joins it
	leave        bool                                // when ctx ends the command goes on; otherwise it is ended
}

// attached joins our streams to a command; with -o json its output goes into
// one [api.RunResult]. It returns the command's exit code as an [exit]. When ctx ends,
// it ends the command and waits for it, or leaves it.
func (a *app) attached(ctx context.Context, j joining) error {
	o := j.Exec
	term, err := a.openTerminal(o)
	if err != nil {
		return err
	}
	defer term.restore()
	term.describe(&o)
	kept, sink := capture{start: time.Now()}, a.write
	if a.asJSON() {
		sink = kept.Add
	}
	j.Exec = o
	status, err := a.stream(ctx, j, term, sink)
	term.restore() // before we print a line ourselves
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil && !j.leave:
		return fault.Wrap(fault.Canceled, ctx.Err(), "the command was ended")
	case status.Status == api.ExecLost:
		return fault.New(fault.Engine, "the box ended while the command ran")
	case a.asJSON():
		return joined(exit(status.ExitCode), writeJSON(a.Out, kept.result(status)))
	}
	a.explain(o, status)
	return exit(status.ExitCode)
}

// stream starts or joins a command and passes its output to sink until the command
// ends, or until ctx ends or sink fails.
func (a *app) stream(ctx context.Context, j joining, term *terminal, sink func(bool, []byte) error) (api.ExitStatus, error) {
	e, err := j.start(j.Exec)
	if err != nil {
		return api.ExitStatus{}, err
	}
	defer func() { _ = e.Close() }() // its end is known by then
	defer term.follow(ctx, e)()
	if in := e.Input(); in != nil && j.Stdin { // nil if the command could not be started
		defer feed(a.In, in, j.TTY)()
	}
	if j.leave {
		return e.Stream(ctx, sink)
	}
	defer context.AfterFunc(ctx, func() { cancel(ctx, e) })()
	status, err := e.Stream(context.WithoutCancel(ctx), sink)
	if err != nil {
		cancel(ctx, e)
	}
	return status, err
}

// cancel ends the command. That fails for a command that has ended already, which
// is as good.
func cancel(ctx context.Context, e command) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer stop()
	_ = e.Cancel(ctx, cancelGrace)
}

// write writes output to our own stream of the same kind.
func (a *app) write(stderr bool, p []byte) error {
	w := a.Out
	if stderr {
		w = a.Err
	}
	if _, err := w.Write(p); err != nil {
		return fmt.Errorf("print the command's output: %w", err)
	}
	return nil
}

// explain prints why the command ended, if its exit code does not tell.
func (a *app) explain(o options.Exec, status api.ExitStatus) {
	switch status.Reason {
	case api.ReasonTimedOut:
		fmt.Fprintf(a.Err, "sandbox: the command was ended after its --timeout of %v\n", o.Timeout)
	case api.ReasonOOMKilled:
		fmt.Fprintln(a.Err, "sandbox: the command was killed: the box ran out of memory; --memory sets how much it has")
	case api.ReasonBoxStopped:
		fmt.Fprintln(a.Err, "sandbox: the command was ended: its box was stopped")
	}
}
