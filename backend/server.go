package backend

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
	made
}

// OnServer returns the boxes of a server. They own the client. With owned, Close
// removes the boxes with auto_remove that were made here; if this process ends
// without it, the server keeps them.
func OnServer(c *client.Client, owned bool) Boxes {
	return &serverBoxes{Client: c, made: made{owned: owned, boxes: map[string]bool{}}}
}

// lateAnswer bounds how long to wait for the reply to a create after ctx has ended.
const lateAnswer = 2 * time.Second

// CreateBox makes a box.
func (s *serverBoxes) CreateBox(ctx context.Context, o options.Box) (api.Box, error) {
	b, err := s.create(ctx, o)
	if err != nil {
		s.failed.Add(1)
		return api.Box{}, err
	}
	s.created.Add(1)
	return b, nil
}

// create makes a box. If ctx ends meanwhile, it waits a little for the reply: the box
// may have been made, and only the reply has its id, to remove it by.
func (s *serverBoxes) create(ctx context.Context, o options.Box) (api.Box, error) {
	if err := s.refuseAfterShutdown(); err != nil {
		return api.Box{}, err
	}
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lateAnswer, giveUp) })()
	b, err := s.Client.CreateBox(patient, o)
	if err == nil && ctx.Err() != nil {
		err = fault.Wrap(fault.Canceled, ctx.Err(), "make a box")
	} else if err == nil {
		err = s.remember(b.ID, o.AutoRemove)
	}
	if err != nil && b.ID != "" {
		if _, left := s.Client.RemoveBox(patient, b.ID, true); left != nil {
			err = errors.Join(err, left)
		}
	}
	s.forgetGone(func() ([]api.Box, error) { return s.Boxes(patient, client.Filter{}) })
	return b, err
}

// StartBox starts a stopped box.
func (s *serverBoxes) StartBox(ctx context.Context, ref string) (api.Box, error) {
	if err := s.refuseAfterShutdown(); err != nil {
		return api.Box{}, err
	}
	return s.Client.StartBox(ctx, ref)
}

// RollbackBox gives a box the disk of a snapshot of it.
func (s *serverBoxes) RollbackBox(ctx context.Context, ref, snapshot string) (api.Box, error) {
	if err := s.refuseAfterShutdown(); err != nil {
		return api.Box{}, err
	}
	return s.Client.RollbackBox(ctx, ref, snapshot)
}

// CloneBox makes boxes that are like a box.
func (s *serverBoxes) CloneBox(ctx context.Context, ref string, o options.Clone) ([]api.Box, error) {
	if err := s.refuseAfterShutdown(); err != nil {
		return nil, err
	}
	clones, err := s.Client.CloneBox(ctx, ref, o)
	for _, b := range clones {
		err = errors.Join(err, s.remember(b.ID, b.AutoRemove))
	}
	if err == nil {
		s.created.Add(int64(len(clones)))
		return clones, nil
	}
	s.failed.Add(1)
	for _, b := range clones {
		_, left := s.Client.RemoveBox(context.WithoutCancel(ctx), b.ID, true)
		err = errors.Join(err, left)
	}
	return nil, err
}

// StopBox stops a box.
func (s *serverBoxes) StopBox(ctx context.Context, ref string, grace time.Duration) (api.Box, error) {
	b, err := s.Client.StopBox(ctx, ref, grace)
	if err == nil && b.AutoRemove {
		s.forget(b.ID)
	}
	return b, err
}

// RemoveBox removes a box.
func (s *serverBoxes) RemoveBox(ctx context.Context, ref string, force bool) (string, error) {
	id, err := s.Client.RemoveBox(ctx, ref, force)
	if err == nil {
		s.forget(id)
	}
	return id, err
}

// longestGrace is the longest grace of a stop that servers take.
const longestGrace = 24 * time.Hour

// Shutdown stops the boxes that were made here. None gets more than a day.
func (s *serverBoxes) Shutdown(ctx context.Context, grace time.Duration) error {
	return forEach(s.shut(), func(id string) error {
		_, err := s.Client.StopBox(ctx, id, min(grace, longestGrace))
		if err != nil && !fault.Is(err, fault.BoxNotFound) && !fault.Is(err, fault.InvalidState) {
			return err // the box is left to Close
		}
		s.forget(id) // stopped, or gone or stopped already
		return nil
	})
}

// Close removes the boxes that end with it.
func (s *serverBoxes) Close(ctx context.Context) error {
	defer s.Client.Close()
	return forEach(s.take(), func(id string) error {
		_, err := s.Client.RemoveBox(ctx, id, true)
		if fault.Is(err, fault.BoxNotFound) {
			return nil
		}
		return err
	})
}

// Metrics returns what was counted here, and how many boxes of the server run.
func (s *serverBoxes) Metrics(ctx context.Context) (api.RuntimeMetrics, error) {
	i, err := s.Info(ctx)
	if err != nil {
		return api.RuntimeMetrics{}, err
	}
	return api.RuntimeMetrics{
		BoxesCreated: s.created.Load(), BoxesFailed: s.failed.Load(), Running: int64(i.Usage.Running),
		Commands: s.execs.Load(), ExecErrors: s.execErrors.Load(),
	}, nil
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

// ExportImage copies what the server sends. The server tells no progress of it.
func (s *serverBoxes) ExportImage(ctx context.Context, ref string, w io.Writer, o image.ExportOptions) error {
	tar, err := s.Client.ExportImage(ctx, ref, o.Compression)
	if err != nil {
		return err
	}
	defer tar.Close()
	_, err = io.Copy(w, tar)
	return err
}

// PushImage has the server push the image.
func (s *serverBoxes) PushImage(ctx context.Context, ref string, o image.PushOptions) (api.Pushed, error) {
	return s.Client.PushImage(ctx, client.Push{Reference: ref, As: o.As, Compression: o.Compression}, o.Progress)
}

// StartExec starts a command.
func (s *serverBoxes) StartExec(ctx context.Context, ref string, o options.Exec) (api.Exec, error) {
	e, err := s.Client.StartExec(ctx, ref, o)
	if err != nil {
		s.execErrors.Add(1)
		return api.Exec{}, err
	}
	s.execs.Add(1)
	return e, nil
}

// Signal sends a signal to the own process of a command.
func (s *serverBoxes) Signal(ctx context.Context, ref, id string, sig unix.Signal) error {
	name := unix.SignalName(sig)
	if name == "" {
		return fault.New(fault.InvalidArgument, "signal %d has no name, and a server takes signals by their names: use one from 1 to 31", sig)
	}
	_, err := s.SignalExec(ctx, ref, id, name)
	return err
}

// A command that can't be joined is ended, in this time.
const (
	cancelGrace = 2 * time.Second
	canceling   = 15 * time.Second
)

// Run starts a command and joins it. A command that can't be joined is ended.
func (s *serverBoxes) Run(ctx context.Context, ref string, o options.Exec) (Command, error) {
	e, err := s.StartExec(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	session, err := s.Attach(ctx, e.BoxID, e.ID, client.AttachOptions{})
	if err != nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), canceling)
		defer stop()
		_, _ = s.CancelExec(ctx, e.BoxID, e.ID, cancelGrace) // the first error is the one that matters
		return nil, err
	}
	return &serverCommand{Session: session, on: s, box: e.BoxID, id: e.ID, input: o.Stdin || o.TTY, tty: o.TTY}, nil
}

// Join joins a running command.
func (s *serverBoxes) Join(ctx context.Context, ref, id string, resume bool) (Command, error) {
	e, err := s.Exec(ctx, ref, id)
	if err != nil {
		return nil, err
	}
	session, err := s.Attach(ctx, e.BoxID, id, client.AttachOptions{Resume: resume})
	if err != nil {
		return nil, err
	}
	return &serverCommand{Session: session, on: s, box: e.BoxID, id: id, input: true, tty: e.TTY}, nil
}

// Observe joins a running command only to read its output.
func (s *serverBoxes) Observe(ctx context.Context, ref, id string) (Command, error) {
	e, err := s.Exec(ctx, ref, id)
	if err != nil {
		return nil, err
	}
	session, err := s.Attach(ctx, e.BoxID, id, client.AttachOptions{Observe: true})
	if err != nil {
		return nil, err
	}
	return &serverCommand{Session: session, on: s, box: e.BoxID, id: id, tty: e.TTY}, nil
}

// Shell starts a shell and joins it.
func (s *serverBoxes) Shell(ctx context.Context, ref string, o client.TerminalOptions) (Command, error) {
	session, err := s.Terminal(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	return &serverCommand{Session: session, on: s, box: ref, input: true, tty: true}, nil
}
