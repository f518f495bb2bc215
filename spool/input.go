package spool

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
)

// inputPiece is how many bytes of input are passed on at once.
const inputPiece = 32 << 10

// WriteStdin writes what from returns to the command's input, and returns how many
// bytes the command's pipe has taken. It waits while the command does not read. With
// last, the input ends behind it. Several calls write one after another. Errors:
// InvalidState (the exec has ended, has closed its input, or a client is attached that
// writes it), InvalidArgument (it takes no input), from's, and those of ctx.
func (e *Exec) WriteStdin(ctx context.Context, from io.Reader, last bool) (n int64, err error) {
	done, err := take(ctx, e.turn)
	if err != nil {
		return 0, err
	}
	defer done()
	n, err = e.copyInput(ctx, from)
	if err == nil && last {
		err = e.endInputBehind(ctx, n)
	}
	return n, err
}

// copyInput is WriteStdin for who has the turn.
func (e *Exec) copyInput(ctx context.Context, from io.Reader) (n int64, err error) {
	for buf := make([]byte, inputPiece); ; {
		got, ended := from.Read(buf)
		if got > 0 {
			wrote, err := e.writePiece(ctx, e.fed, buf[:got])
			n += int64(wrote)
			if err != nil {
				return n, err
			}
		}
		if errors.Is(ended, io.EOF) {
			return n, nil
		}
		if ended != nil {
			return n, ended
		}
	}
}

// CloseStdin ends the command's input: a terminal is sent control-D. Errors: those of
// WriteStdin.
func (e *Exec) CloseStdin(ctx context.Context) error {
	done, err := take(ctx, e.turn)
	if err != nil {
		return err
	}
	defer done()
	return e.endInput(ctx)
}

// endInputBehind ends the input behind n bytes that the command's pipe has taken. A command
// that has read them may have ended or closed its input since, which is no failure.
func (e *Exec) endInputBehind(ctx context.Context, n int64) error {
	err := e.endInput(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if n > 0 && fault.Is(err, fault.InvalidState) && e.writer() == nil {
		return nil
	}
	return err
}

// endInput is CloseStdin for who has the turn.
func (e *Exec) endInput(ctx context.Context) error {
	if e.Record().TTY {
		_, err := e.writePiece(ctx, e.fed, []byte(core.EndOfInput))
		return err
	}
	command, err := e.fed()
	if err != nil {
		return err
	}
	return command.CloseStdin(ctx)
}

// Resize sets the size of the command's terminal. Errors: InvalidState (the exec has
// ended), InvalidArgument (it has no terminal).
func (e *Exec) Resize(ctx context.Context, cols, rows int) error {
	command, err := e.running()
	if err != nil {
		return err
	}
	if !e.Record().TTY {
		return fault.New(fault.InvalidArgument, "exec %s has no terminal to resize", e.id)
	}
	return command.Resize(ctx, cols, rows)
}

// take waits until nobody else has a turn, and returns a function that ends it.
// Errors: those of ctx.
func take(ctx context.Context, turn chan struct{}) (done func(), err error) {
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fault.Of(ctx.Err())
	}
}

// fed returns the command if it runs, takes input, and no attached client writes it.
func (e *Exec) fed() (*core.Exec, error) {
	command, err := e.running()
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.open && !e.rec.TTY:
		return nil, fault.New(fault.InvalidArgument, "exec %s takes no input: start it with stdin_open or tty", e.id)
	case e.writer() != nil:
		return nil, fault.New(fault.InvalidState, "a client is attached to exec %s, and writes its input alone", e.id)
	case command.Stdin() == nil:
		return nil, errInputClosed(e.id)
	}
	return command, nil
}

func errInputClosed(id string) error {
	return fault.New(fault.InvalidState, "the input of exec %s is closed", id)
}

// Feed writes p to the command's input for who has started the command, or is attached
// and may write, and returns how many bytes were taken. It waits while the command does
// not read. Errors: InvalidState (the exec has ended, or its input is closed or not there),
// and those of ctx.
func (e *Exec) Feed(ctx context.Context, p []byte) (int, error) {
	return e.writePiece(ctx, e.running, p)
}

// writePiece writes p to the command that find returns. The end of ctx ends a write that
// waits, with a deadline. A deadline ends all writes to the descriptor, whoever called
// them: so one waits for another before it begins.
func (e *Exec) writePiece(ctx context.Context, find func() (*core.Exec, error), p []byte) (int, error) {
	command, err := find()
	if err != nil {
		return 0, err
	}
	in := command.Stdin()
	if in == nil {
		return 0, errInputClosed(e.id)
	}
	done, err := take(ctx, e.pen)
	if err != nil {
		return 0, err
	}
	defer done()
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = in.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := in.Write(p)
	if !stop() {
		<-cut
		_ = in.SetWriteDeadline(time.Time{})
	}
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return n, fault.Of(ctx.Err())
	case errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.EIO):
		return n, errInputClosed(e.id)
	}
	return n, fault.Wrap(fault.Engine, err, "write the input of exec %s", e.id)
}
