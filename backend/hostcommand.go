package backend

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/fault"
)

// hostCommand is a command of this host; leave ends our use of it.
type hostCommand struct {
	*core.Exec
	leave  func() error
	left   context.Context // ended by detach
	detach context.CancelFunc
}

func newHostCommand(e *core.Exec, leave func() error) hostCommand {
	left, detach := context.WithCancel(context.Background())
	return hostCommand{e, leave, left, detach}
}

func (c hostCommand) Detach() error {
	c.detach()
	return nil
}

// Unread says that no other program reads the output.
func (c hostCommand) Unread() string {
	return ", but waits when it has printed some KiB, because no daemon reads them"
}

func (c hostCommand) Signal(ctx context.Context, sig unix.Signal) error {
	return c.Exec.Signal(ctx, int(sig))
}

func (c hostCommand) Close() error {
	left := c.left.Err() != nil
	c.detach() // frees the context
	if left {
		return c.Exec.Detach()
	}
	return c.leave()
}

func (c hostCommand) Input() io.WriteCloser {
	if in := c.Stdin(); in != nil {
		return hostInput{in, c.Exec}
	}
	return nil
}

// hostInput is the input of a command.
type hostInput struct {
	in   *core.Stdin
	exec *core.Exec
}

// Write writes to the command.
func (i hostInput) Write(p []byte) (int, error) {
	n, err := i.in.Write(p)
	if errors.Is(err, os.ErrClosed) {
		return n, fault.New(fault.InvalidState, "the command's input was closed")
	}
	return n, fault.Wrap(fault.InvalidState, err, "the command does not read its input any more")
}

// Close ends the input. A second call does nothing.
func (i hostInput) Close() error { return i.exec.CloseStdin(context.Background()) }

func (c hostCommand) Reader(ctx context.Context) (Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.left, cancel)
	end := func() {
		stop()
		cancel()
	}
	r, err := c.Exec.Reader(ctx)
	if err != nil {
		end()
		return nil, err
	}
	return hostReader{r, c.left, end}, nil
}

// hostReader reads until the command is left.
type hostReader struct {
	*core.Reader
	left context.Context
	end  func()
}

// Read returns ErrDetached when the command was left.
func (r hostReader) Read(buf []byte) (int, bool, error) {
	n, stderr, err := r.Reader.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) && r.left.Err() != nil {
		err = ErrDetached
	}
	return n, stderr, err
}

// Drain reads and drops the output.
func (r hostReader) Drain() error { return drain(r) }

// Close ends the use of the reader.
func (r hostReader) Close() {
	r.Reader.Close()
	r.end()
}

func (c hostCommand) FD(stream Stream) (int, error) {
	stdout, stderr := c.Output()
	var f *os.File
	switch stream {
	case Exit:
		return c.ExitFD(), nil
	case Stdin:
		if in := c.Stdin(); in != nil {
			f = in.File
		}
	case Stdout:
		f = stdout
	case Stderr:
		f = stderr
	}
	return descriptor(stream, f)
}

// descriptor returns the descriptor of a stream; f is nil if the command has none.
// Errors: InvalidArgument, InvalidState.
func descriptor(stream Stream, f *os.File) (int, error) {
	if stream < Stdin || stream > Exit {
		return 0, fault.New(fault.InvalidArgument, "stream is %d, and no stream has that number", stream)
	}
	if f == nil {
		return 0, fault.New(fault.InvalidState, "the command has no stream %d", stream)
	}
	fd := -1
	if core.WithFD(f, func(n int) error { fd = n; return nil }) != nil {
		return 0, fault.New(fault.InvalidState, "stream %d was closed", stream)
	}
	return fd, nil
}
