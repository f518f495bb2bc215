package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
	"sandbox/core/image"
	"sandbox/core/options"
)

// serverBoxes are the boxes of a server.
type serverBoxes struct {
	*client.Client
	owned bool     // boxes with auto_remove end with this run
	made  []string // ids of these boxes
}

// lateAnswer bounds how long to wait for the reply to a create after ctx has ended.
const lateAnswer = 2 * time.Second

// CreateBox makes a box. If ctx ends meanwhile, it waits a little for the reply:
// the box may have been made, and only the reply has its id, to remove it by.
func (s *serverBoxes) CreateBox(ctx context.Context, o options.Box) (api.Box, error) {
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lateAnswer, giveUp) })()
	b, err := s.Client.CreateBox(patient, o)
	switch {
	case err != nil:
		return api.Box{}, err
	case ctx.Err() != nil:
		_, err := s.RemoveBox(patient, b.ID, true)
		return api.Box{}, joined(fault.Wrap(fault.Canceled, ctx.Err(), "make a box"), err)
	case s.owned && o.AutoRemove:
		s.made = append(s.made, b.ID)
	}
	return b, nil
}

// Close removes the boxes that end with this run.
func (s *serverBoxes) Close(ctx context.Context) error {
	defer s.Client.Close()
	return each(s.made, func(id string) error {
		_, err := s.RemoveBox(ctx, id, true)
		if fault.Is(err, fault.BoxNotFound) {
			return nil
		}
		return err
	})
}

// ImageCommand has the server pull the image if it is missing.
func (s *serverBoxes) ImageCommand(ctx context.Context, ref string, progress func(api.ImageProgress)) ([]string, error) {
	img, err := s.PullMissing(ctx, ref, progress)
	if err != nil {
		return nil, err
	}
	cmd := slices.Concat(img.Entrypoint, img.Cmd)
	return cmd, options.CheckImageCommand(ref, cmd)
}

// ImportImage sends the source as a tar. The server tells no progress of it.
func (s *serverBoxes) ImportImage(ctx context.Context, name, source string, _ func(api.ImageProgress)) (api.Image, error) {
	tar, err := image.Pack(ctx, source)
	if err != nil {
		return api.Image{}, err
	}
	defer tar.Close()
	return s.Client.ImportImage(ctx, name, tar)
}

// Signal sends a signal to the own process of a command.
func (s *serverBoxes) Signal(ctx context.Context, ref, id string, sig unix.Signal) error {
	_, err := s.SignalExec(ctx, ref, id, unix.SignalName(sig))
	return err
}

// Run starts a command and joins it. A command that can't be joined is ended.
func (s *serverBoxes) Run(ctx context.Context, ref string, o options.Exec) (command, error) {
	e, err := s.StartExec(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	session, err := s.Attach(ctx, e.BoxID, e.ID, client.AttachOptions{})
	if err != nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer stop()
		_, _ = s.CancelExec(ctx, e.BoxID, e.ID, cancelGrace) // the first error is the one that matters
		return nil, err
	}
	return serverCommand{Session: session, server: s.Client, box: e.BoxID, id: e.ID, input: o.Stdin || o.TTY}, nil
}

// Keep leaves the boxes as they are when this run ends.
func (s *serverBoxes) Keep() error {
	s.made = nil
	return nil
}

// Join joins a running command. What a terminal has shown to who left it is not
// shown again.
func (s *serverBoxes) Join(ctx context.Context, ref, id string, tty bool) (command, error) {
	session, err := s.Attach(ctx, ref, id, client.AttachOptions{Resume: tty})
	if err != nil {
		return nil, err
	}
	return serverCommand{Session: session, server: s.Client, box: ref, id: id, input: true}, nil
}

// Shell starts a shell and joins it.
func (s *serverBoxes) Shell(ctx context.Context, ref string, o client.TerminalOptions) (command, error) {
	session, err := s.Terminal(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	return serverCommand{Session: session, server: s.Client, box: ref, input: true}, nil
}

// serverCommand is a command on a server, which we have joined with a session.
type serverCommand struct {
	*client.Session
	server  *client.Client
	box, id string // id is "" for a shell, which ends with its session
	input   bool
}

// ID returns the id of the exec.
func (c serverCommand) ID() string {
	if c.id != "" {
		return c.id
	}
	return c.ExecID()
}

// Unread returns "": the server keeps the output.
func (c serverCommand) Unread() string { return "" }

// Input returns the session's input.
func (c serverCommand) Input() io.WriteCloser {
	if !c.input {
		return nil
	}
	return sessionInput{c.Session}
}

// sessionInput writes to the command of a session.
type sessionInput struct{ *client.Session }

// Close ends the command's input. The session goes on.
func (i sessionInput) Close() error { return i.CloseInput() }

// Resize sets the size of the terminal.
func (c serverCommand) Resize(_ context.Context, cols, rows int) error {
	return c.Session.Resize(cols, rows)
}

// Cancel ends the command.
func (c serverCommand) Cancel(ctx context.Context, grace time.Duration) error {
	if c.id == "" {
		return c.Close()
	}
	_, err := c.server.CancelExec(ctx, c.box, c.id, grace)
	return err
}

// Stream passes all output to sink and returns how the command ended.
func (c serverCommand) Stream(ctx context.Context, sink func(bool, []byte) error) (api.ExitStatus, error) {
	end, err := c.Session.Stream(ctx, sink)
	if errors.Is(err, client.ErrDetached) {
		err = errDetached
	}
	if err != nil {
		return api.ExitStatus{}, err
	}
	return c.status(ctx, end)
}

// status returns how the command ended: what the session said, which has an exit
// code, and the reason from the exec's record.
func (c serverCommand) status(ctx context.Context, end client.Ended) (api.ExitStatus, error) {
	told := api.ExitStatus{Status: api.ExecSucceeded, Reason: api.ReasonExited}
	if *end.ExitCode == 0 {
		return told, nil
	}
	told.Status, told.ExitCode = api.ExecFailed, *end.ExitCode
	if end.Signal != nil {
		told.Signal, told.Reason = *end.Signal, api.ReasonSignaled
	}
	if c.id == "" {
		return told, nil
	}
	e, err := c.server.Exec(ctx, c.box, c.id)
	var refused *client.Error
	switch {
	case errors.As(err, &refused): // the box has been removed meanwhile
		return told, nil
	case err != nil:
		return told, err
	}
	told.Status = e.Status
	if e.Reason != nil {
		told.Reason = *e.Reason
	}
	return told, nil
}
