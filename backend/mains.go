package backend

import (
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/spool"
)

// keptCommand is a run of the main command of a box of this host. The home's shim keeps
// its output, and any number of programs read that.
type keptCommand struct {
	box    *core.Box
	e      *spool.Exec
	left   context.Context // ended by detach
	detach context.CancelFunc
}

// kept returns an exec as a run of a main command. Errors: ExecNotFound (it is none).
func (h hostBoxes) kept(ctx context.Context, ref, id string) (keptCommand, error) {
	rec, err := h.host.Find(ctx, ref)
	if err != nil {
		return keptCommand{}, err
	}
	if h.host.Mains == nil { // as of a host that a test has made
		return keptCommand{}, fault.New(fault.ExecNotFound, "no exec %.60q", id)
	}
	e, err := h.host.Mains.Get(rec.ID, id)
	return keptCommand{box: h.host.At(rec.ID), e: e}, err
}

// joined returns a command that was joined, unless err says that it could not be.
func joined(c keptCommand, err error) (Command, error) {
	if err != nil {
		return nil, err
	}
	c.left, c.detach = context.WithCancel(context.Background())
	return c, nil
}

func (c keptCommand) ID() string { return c.e.Record().ID }

// Input returns nil: a main command has none.
func (c keptCommand) Input() io.WriteCloser { return nil }

// Unread returns "": the shim keeps the output.
func (c keptCommand) Unread() string { return "" }

func (c keptCommand) Cancel(ctx context.Context, grace time.Duration) error {
	_, err := c.box.Cancel(ctx, c.ID(), grace)
	return err
}

func (c keptCommand) Signal(ctx context.Context, sig unix.Signal) error {
	_, err := c.box.Signal(ctx, c.ID(), int(sig))
	return err
}

func (c keptCommand) Resize(context.Context, int, int) error {
	return fault.New(fault.InvalidState, "the command has no terminal")
}

// FD fails: the output lies in files.
func (c keptCommand) FD(Stream) (int, error) {
	return 0, fault.New(fault.InvalidState, "the output of a main command has no descriptors in process: read it")
}

func (c keptCommand) Detach() error {
	c.detach()
	return nil
}

func (c keptCommand) Close() error {
	c.detach()
	return nil
}

func (c keptCommand) Reader(ctx context.Context) (Reader, error) {
	o, err := c.e.Observe([2]int64{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.left, cancel)
	return &keptReader{e: c.e, o: o, ctx: ctx, left: c.left, end: func() { stop(); cancel(); o.Close() }}, nil
}

// keptReader reads the output of a main command until that has ended or is left.
type keptReader struct {
	e    *spool.Exec
	o    *spool.Observer
	ctx  context.Context
	left context.Context
	end  func()
}

// Read also fails with [client.Missed], and then goes on.
func (r *keptReader) Read(buf []byte) (int, bool, error) {
	for {
		stream, n, err := r.o.Next(buf)
		var missed spool.Missed
		switch {
		case errors.As(err, &missed):
			return 0, false, client.Missed{Stdout: missed.At[spool.Stdout], Stderr: missed.At[spool.Stderr]}
		case err != nil || n > 0:
			return n, stream == spool.Stderr, err
		}
		ended, lost := r.o.Ended()
		switch {
		case ended && lost:
			return 0, false, fault.New(fault.Storage, "the disk was full: the end of the output is lost")
		case ended:
			return 0, false, io.EOF
		}
		if err := r.o.Wait(r.ctx); err != nil {
			if r.left.Err() != nil {
				err = ErrDetached
			}
			return 0, false, err
		}
	}
}

func (r *keptReader) Status() api.ExitStatus { return r.e.Record().Exit() }

// Drain reads and drops the output.
func (r *keptReader) Drain() error { return drain(r) }

// Close ends the use of the reader.
func (r *keptReader) Close() { r.end() }
