package core

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"sandbox/api"
)

// OutputBuffer is the size of buffer to hand to [Exec.Stream]: what a pipe holds.
const OutputBuffer = 64 << 10

// Exec is a command in a box. Its output is read by one goroutine, with Stream
// or with one Reader; the other methods may be called at the same time. Close
// ends the use of the Exec.
type Exec struct {
	p      *Process
	errors *atomic.Int64
}

// NewExec returns a command that an engine was attached to, for who has no [Box].
func NewExec(p *Process) *Exec { return &Exec{p: p, errors: new(atomic.Int64)} }

// ID returns the exec's id.
func (e *Exec) ID() string { return e.p.Record.ID }

// Record returns the exec's record from when it started; see [api.Exec.Ended].
func (e *Exec) Record() api.Exec { return e.p.Record }

// From returns where the output begins that follows: readers before this one have had
// the rest. It is behind the position that [Box.AttachBehind] was given if what is
// between can't be had any more.
func (e *Exec) From() Position { return e.p.From }

// Output returns the ends of the command's pipes, which don't block, to a reader
// that does without Stream and calls Took; stderr is nil with a terminal, which is
// stdout.
func (e *Exec) Output() (stdout, stderr *os.File) { return e.p.Stdout, e.p.Stderr }

// Took notes for [Box.Metrics] how many bytes of output have been read from the
// ends that Output returns, all in all since the command was started: also by
// processes that read it before this one.
func (e *Exec) Took(total int64) { e.p.Streams.Output.Store(total) }

// ExitFD returns a descriptor that becomes readable when Exit can be called.
func (e *Exec) ExitFD() int { return e.p.ExitFD() }

// Exit returns the end of the command's own process. It is called once, when
// ExitFD is readable. Stream calls it itself: don't use both.
func (e *Exec) Exit() (api.ExitStatus, error) {
	status, err := e.p.Exit()
	if err == nil && (status.Reason == api.ReasonNotFound || status.Reason == api.ReasonNotExecutable) {
		e.errors.Add(1)
	}
	return status, err
}

// CloseStdin ends the command's input, also when the input was to stay open for
// later readers of the exec.
func (e *Exec) CloseStdin(ctx context.Context) error { return e.p.CloseStdin(ctx) }

// Stdin returns the command's input, which is nil unless it was asked for. With
// a terminal it is the terminal. Closing it gives the command EOF.
func (e *Exec) Stdin() *Stdin {
	if e.p.Stdin == nil {
		return nil
	}
	return &Stdin{e.p.Stdin, &e.p.Streams.Stdin}
}

// Signal sends a signal to the command's own process. Errors: InvalidState.
func (e *Exec) Signal(ctx context.Context, sig int) error { return e.p.Signal(ctx, sig) }

// Cancel ends the command's whole process tree: it sends SIGTERM, and SIGKILL
// after grace.
func (e *Exec) Cancel(ctx context.Context, grace time.Duration) error {
	return e.p.Cancel(ctx, grace)
}

// HangUp sends SIGHUP to the command's whole process tree, because its terminal
// has gone, and SIGKILL to what is left after grace. It does so also when the
// command itself has ended.
func (e *Exec) HangUp(ctx context.Context, grace time.Duration) error {
	return e.p.HangUp(ctx, grace)
}

// Resize sets the size of the terminal.
func (e *Exec) Resize(ctx context.Context, cols, rows int) error { return e.p.Resize(ctx, cols, rows) }

// Detach ends the use of the exec and keeps its output for a later
// [Box.Attach].
func (e *Exec) Detach() error { return e.p.Detach() }

// Close ends the use of the exec. The command goes on running. Neither Close nor
// [Exec.Detach] may be called while Stream or a Reader reads: end its context and
// wait for it first.
func (e *Exec) Close() error { return e.p.Release() }

// Stream reads all output into buf, passes each piece to sink, and returns the
// end of the command. sink runs on the caller's goroutine and thread, and no
// output is read until it returns; p is valid until then. Stream returns early
// with the error of sink, or with that of ctx; the command then goes on and its
// output waits.
func (e *Exec) Stream(ctx context.Context, buf []byte, sink func(stderr bool, p []byte) error) (api.ExitStatus, error) {
	r, err := e.Reader(ctx)
	if err != nil {
		return api.ExitStatus{}, err
	}
	defer r.Close()
	return Pass(r, buf, sink)
}
