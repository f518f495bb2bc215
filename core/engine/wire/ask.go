package wire

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// CutOff reports whether err means that the other side of a connection has gone.
func CutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

// Ask sends a request and reads its answer into v; see [Conn.Answer]. It fails when
// ctx ends first, which cuts the connection. The caller still owns fds.
func (c *Conn) Ask(ctx context.Context, t Type, body, v any, fds ...int) error {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, c.Cut)
		defer stop()
	}
	if err := c.Send(t, body, fds...); err != nil {
		return err
	}
	return c.Answer(v)
}

// Answer receives a frame and reads its body into v, or its descriptors into a
// *[]int, which are the caller's then; v may be nil. An Error frame is returned as the
// failure that it carries.
func (c *Conn) Answer(v any) error {
	f, err := c.Recv()
	if err != nil {
		return err
	}
	if fds, ok := v.(*[]int); ok && f.Type != TypeError {
		*fds = f.FDs
		return nil
	}
	f.CloseFDs()
	if f.Type == TypeError {
		return f.Failure()
	}
	if v == nil {
		return nil
	}
	return f.Decode(v)
}

// Failure returns the classified failure that an Error frame carries.
func (f Frame) Failure() error {
	var e Error
	if err := f.Decode(&e); err != nil {
		return err
	}
	return e.Failure()
}

// Failure returns the failure as one of package fault.
func (e Error) Failure() error { return fault.New(e.Kind, "%s", e.Message) }
