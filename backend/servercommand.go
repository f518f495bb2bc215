package backend

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/client"
	"sandbox/core/fault"
)

// serverCommand is a command on a server, which we have joined with a session.
type serverCommand struct {
	*client.Session
	on      *serverBoxes
	box, id string // id is "" for a shell, which ends with its session
	input   bool   // it may take input
	tty     bool

	reading sync.Mutex // held by who reads the session
	said    []byte     // the beginning of the output
	status  api.ExitStatus
	ended   atomic.Bool // status has the end
	closed  atomic.Bool // the input was closed
	left    atomic.Bool // Detach was called

	opening sync.Mutex
	fds     *descriptors // nil before the first FD
}

// ID returns the id of the exec.
func (c *serverCommand) ID() string {
	if c.id != "" {
		return c.id
	}
	return c.ExecID()
}

// Unread returns "": the server keeps the output.
func (c *serverCommand) Unread() string { return "" }

// Input returns the session's input.
func (c *serverCommand) Input() io.WriteCloser {
	if !c.input {
		return nil
	}
	return serverInput{c}
}

// serverInput writes to the command of a session.
type serverInput struct{ c *serverCommand }

// Write writes to the command. It does not notice that the command does not read.
func (i serverInput) Write(p []byte) (int, error) {
	if i.c.closed.Load() {
		return 0, fault.New(fault.InvalidState, "the command's input was closed")
	}
	if i.c.ended.Load() {
		return 0, fault.New(fault.InvalidState, "the command does not read its input any more")
	}
	return i.c.Write(p)
}

// Close ends the command's input. A second call does nothing. The session goes on. It
// does not fail where the server has ended the session: a command that has ended
// needs no end of its input, and if the connection was lost, the output says so.
func (i serverInput) Close() error {
	if i.c.closed.Swap(true) || i.c.ended.Load() {
		return nil
	}
	if d := i.c.descriptors(); d != nil {
		return d.closeInput() // which passes on first what is in the pipe
	}
	_ = i.c.CloseInput()
	return nil
}

// Resize sets the size of the terminal.
func (c *serverCommand) Resize(_ context.Context, cols, rows int) error {
	if !c.tty {
		return fault.New(fault.InvalidState, "the command has no terminal")
	}
	if c.ended.Load() {
		return fault.New(fault.InvalidState, "the command has ended")
	}
	return c.Session.Resize(cols, rows)
}

// Cancel ends the command, and returns when it has ended.
func (c *serverCommand) Cancel(ctx context.Context, grace time.Duration) error {
	if c.id == "" {
		return c.Close()
	}
	_, err := c.on.CancelExec(ctx, c.box, c.id, grace)
	return err
}

// Signal sends a signal to the command's own process.
func (c *serverCommand) Signal(ctx context.Context, sig unix.Signal) error {
	return c.on.Signal(ctx, c.box, c.ID(), sig)
}

// Detach leaves the command.
func (c *serverCommand) Detach() error {
	c.left.Store(true)
	if d := c.descriptors(); d != nil {
		d.leave()
	}
	return c.Session.Detach()
}

// Close ends the session. After Detach it waits until the server has let the command
// go, so that the next one can join it.
func (c *serverCommand) Close() error {
	var err error
	if c.left.Load() { // the answer comes in some seconds at the latest
		err = (&serverReader{c, context.Background()}).Drain()
	}
	_ = c.Session.Close() // what it would say, the reader was told
	if d := c.descriptors(); d != nil {
		d.close()
	}
	if errors.Is(err, ErrDetached) {
		return nil
	}
	return err
}

// Reader returns a reader of the output.
func (c *serverCommand) Reader(ctx context.Context) (Reader, error) {
	return &serverReader{c, ctx}, nil
}

// serverReader reads the session of a command.
type serverReader struct {
	c   *serverCommand
	ctx context.Context
}

// Read reads a piece of output.
func (r *serverReader) Read(buf []byte) (int, bool, error) {
	if d := r.c.source(); d != nil {
		return d.read(r.ctx, buf)
	}
	defer r.c.reading.Unlock()
	return r.c.read(r.ctx, buf, r.c.Read)
}

// source returns the descriptors that the output goes to; nil if there are none, and
// reading is held then.
func (c *serverCommand) source() *descriptors {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.fds == nil {
		c.reading.Lock()
	}
	return c.fds
}

// read reads a piece of output with one of the session's ways to read; reading is held.
// At the end it finds out how the command ended.
func (c *serverCommand) read(ctx context.Context, buf []byte, session func(context.Context, []byte) (int, bool, error)) (n int, stderr bool, err error) {
	n, stderr, err = session(ctx, buf)
	if n > 0 && len(c.said) < maxSaid {
		c.said = append(c.said, buf[:min(n, maxSaid)]...)
	}
	if errors.Is(err, io.EOF) && !c.ended.Load() {
		status, failed := c.ending(ctx, c.Ended())
		if failed != nil {
			return 0, false, failed
		}
		c.status = status
		c.ended.Store(true)
	}
	return n, stderr, err
}

// Drain drops what is left of the output, also of what goes to descriptors.
func (r *serverReader) Drain() error {
	if d := r.c.descriptors(); d != nil {
		return d.drain(r.ctx)
	}
	return drain(r)
}

// Status returns the end of the command.
func (r *serverReader) Status() api.ExitStatus { return r.c.status }

// Close ends the use of the reader.
func (r *serverReader) Close() {}

// ending returns how the command ended. A server of an earlier version tells the
// reason in the exec's record alone.
func (c *serverCommand) ending(ctx context.Context, end client.Ended) (api.ExitStatus, error) {
	told := api.ExitStatus{Status: end.Status, Reason: end.Reason, ExitCode: *end.ExitCode}
	if end.Signal != nil {
		told.Signal = *end.Signal
	}
	if told.Status == "" {
		if err := c.recorded(ctx, &told); err != nil {
			return told, err
		}
	}
	switch told.Reason {
	case api.ReasonNotFound, api.ReasonNotExecutable:
		c.on.execErrors.Add(1)
		told.Message = c.unstarted()
	}
	return told, nil
}

// recorded sets the status and the reason that the exec's record has.
func (c *serverCommand) recorded(ctx context.Context, told *api.ExitStatus) error {
	told.Status, told.Reason = api.ExecSucceeded, api.ReasonExited
	if told.ExitCode == 0 {
		return nil
	}
	told.Status = api.ExecFailed
	if told.Signal != 0 {
		told.Reason = api.ReasonSignaled
	}
	if c.id == "" {
		return nil
	}
	e, err := c.on.Exec(ctx, c.box, c.id)
	var refused *client.Error
	switch {
	case errors.As(err, &refused): // the box has been removed meanwhile
		return nil
	case err != nil:
		return err
	}
	told.Status = e.Status
	if e.Reason != nil {
		told.Reason = *e.Reason
	}
	return nil
}

// maxSaid is how much of the output is kept, to find the line in it that says why a
// command could not be started.
const maxSaid = 1 << 10

// unstarted says why the command could not be started: its one line of output does.
func (c *serverCommand) unstarted() string {
	line, _, _ := strings.Cut(string(c.said), "\n")
	if why, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r"), "sandbox: "); ok {
		return why
	}
	return "its standard error said why"
}

// descriptors returns what FD has made, or nil.
func (c *serverCommand) descriptors() *descriptors {
	c.opening.Lock()
	defer c.opening.Unlock()
	return c.fds
}

// FD returns a descriptor of a stream. From the first one on, all output goes to
// pipes.
func (c *serverCommand) FD(stream Stream) (int, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.fds == nil {
		if !c.reading.TryLock() { // held until the pipes have ended
			return 0, fault.New(fault.InvalidState, "another thread reads the command's output: take descriptors before")
		}
		d, err := open(c)
		if err != nil {
			c.reading.Unlock()
			return 0, err
		}
		c.fds = d
	}
	return c.fds.fd(stream)
}
