package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sandbox/api"
	"sandbox/backend"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// cancelGrace is the time between SIGTERM and SIGKILL for a command that is ended.
const cancelGrace = 2 * time.Second

// joining says which command to join, and how.
type joining struct {
	options.Exec                                             // its terminal and its input
	start        func(options.Exec) (backend.Command, error) // starts the command, or joins it
	leave        bool                                        // when ctx ends the command goes on; otherwise it is ended
	box          string                                      // a name or id to join it by again
	keys         keySequence                                 // leave it
	keep         func() error                                // called before it is left; nil for nothing
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
	case errors.Is(err, backend.ErrDetached):
		return nil
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
	defer term.follow(ctx, e, j.leave)()
	if in := e.Input(); in != nil && j.Stdin { // nil if the command could not be started
		defer feed(a.In, a.detachable(in, j, term, e), j.TTY, j.leave)()
	}
	if j.leave {
		return a.follow(ctx, j, e, sink)
	}
	defer context.AfterFunc(ctx, func() { cancel(ctx, e) })()
	status, err := a.follow(context.WithoutCancel(ctx), j, e, sink)
	if err != nil && !errors.Is(err, backend.ErrDetached) {
		cancel(ctx, e)
	}
	return status, err
}

// follow passes a command's output to sink. When we have left the command it says
// how to come back.
func (a *app) follow(ctx context.Context, j joining, e backend.Command, sink func(bool, []byte) error) (api.ExitStatus, error) {
	status, err := backend.Pass(ctx, e, make([]byte, core.OutputBuffer), sink)
	for errors.As(err, &client.Missed{}) {
		fmt.Fprintf(a.Err, "sandbox: %v\n", err)
		status, err = backend.Pass(ctx, e, make([]byte, core.OutputBuffer), sink)
	}
	if errors.Is(err, backend.ErrDetached) {
		fmt.Fprintf(a.Err, "\r\nsandbox: the command goes on%s: 'sandbox attach %s %s' joins it again\r\n", e.Unread(), printable(j.box), printable(e.ID()))
	}
	return status, err
}

// detachable returns the input of a command that the keys of j leave, if these come
// from our terminal.
func (a *app) detachable(in io.WriteCloser, j joining, term *terminal, e backend.Command) io.WriteCloser {
	if len(j.keys) == 0 || !term.raw {
		return in
	}
	return &detachable{WriteCloser: in, keys: j.keys, detach: func() bool {
		var err error
		if j.keep != nil {
			err = j.keep()
		}
		if err == nil {
			err = e.Detach()
		}
		if err != nil {
			fmt.Fprintf(a.Err, "\r\nsandbox: %s\r\n", printable(fault.Of(err).Message))
		}
		return err == nil
	}}
}

// cancel ends the command. That fails for a command that has ended already, which
// is as good.
func cancel(ctx context.Context, e backend.Command) {
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
