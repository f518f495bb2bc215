package httpd

import (
	"context"
	"errors"
	"net/http"

	"sandbox/core/fault"
	"sandbox/spool"
)

// attachExec attaches a client to an exec: it reads the output, and writes input
// and signals. A client that reads slowly slows the command down.
func (s *Server) attachExec(w http.ResponseWriter, r *request) error {
	at, err := r.attachment()
	if err != nil {
		return err
	}
	e, err := s.spooled(r)
	if err != nil {
		return err
	}
	if at.resume {
		at.skip = e.Left()
	}
	if err := r.mustUpgrade(); err != nil {
		return err
	}
	if at.observe || e.Shared() {
		return s.observeExec(w, r, e, at.skip)
	}
	a, err := e.Attach(at.skip)
	if err != nil {
		return err
	}
	defer a.Close()
	c, err := s.upgrade(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	on := actionsOf(ctx, writing, e, a).guarded(a.Writes)
	_ = c.serve(ctx, on, func(ctx context.Context) error { // the client was told
		return c.showExec(e, a.From, func() error { return c.showAttached(ctx, a, true) })
	})
	c.end(stop)
	return nil
}

// observeExec shows a client an exec's output. Any number of clients may observe
// it, beside the one that is attached. One that reads slowly slows nothing down: it
// is told where it goes on when output was dropped meanwhile.
func (s *Server) observeExec(w http.ResponseWriter, r *request, e *spool.Exec, skip [2]int64) error {
	o, err := e.Observe(skip)
	if err != nil {
		return err
	}
	defer o.Close()
	c, err := s.upgrade(w, r)
	if err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	on := actions{}.guarded(func() error {
		return fault.New(fault.InvalidState, "a client that observes exec %s writes nothing: attach without mode=observe, or send requests", e.Record().ID)
	})
	_ = c.serve(ctx, on, func(ctx context.Context) error { // the client was told
		return c.showExec(e, o.From, func() error { return c.show(ctx, &o.Bytes, c.observed(o)) })
	})
	c.ends.Wait()
	return nil
}

// end waits for the socket's goroutines, and ends with stop a write of theirs to the
// command that still blocks. The command, its other writers and its next client go on.
func (c *socket) end(stop context.CancelFunc) {
	stop()
	c.ends.Wait()
}

// showExec tells the client where its streams begin, has show send output until the
// exec has ended, and sends the exit.
func (c *socket) showExec(e *spool.Exec, from func() (stdout, stderr int64), show func() error) error {
	stdout, stderr := from()
	if err := c.tell(ready{"ready", e.Record().ID, &stdout, &stderr}); err != nil {
		return err
	}
	if err := show(); err != nil {
		return err
	}
	return c.exit(e.Record())
}

// showAttached is show for the client that is attached. One that detaches has left
// when showAttached returns, so that it can come back as soon as it is told.
func (c *socket) showAttached(ctx context.Context, a *spool.Attached, tagged bool) error {
	defer func() {
		var left detached
		if errors.As(context.Cause(ctx), &left) {
			a.Leave(left.had)
		}
	}()
	return c.show(ctx, &a.Bytes, func() (int64, error) {
		return a.Pass(piece, func(p spool.Piece) error { return c.writePiece(tag(p.Stream, tagged), p) })
	})
}

// tag returns what a frame with output of a stream begins with.
func tag(s spool.Stream, tagged bool) []byte {
	if !tagged {
		return nil
	}
	return []byte{byte(s) + 1}
}

// observed returns what sends an observer the next piece. The piece is copied first,
// because it may be dropped meanwhile.
func (c *socket) observed(o *spool.Observer) func() (int64, error) {
	return func() (int64, error) {
		buf := pieces.Get().(*[]byte)
		defer pieces.Put(buf)
		stream, n, err := o.Next((*buf)[page:])
		if err != nil || n == 0 {
			return 0, err
		}
		return int64(n), c.writeCopy(tag(stream, true), *buf, int64(n))
	}
}

// show sends output until the exec has ended. next sends one piece of it.
func (c *socket) show(ctx context.Context, b *spool.Bytes, next func() (int64, error)) error {
	for {
		if err := b.Wait(ctx); err != nil {
			return err
		}
		if err := c.showPieces(ctx, next); err != nil {
			return err
		}
		if ended, lost := b.Ended(); ended && lost {
			return fault.New(fault.Storage, "the disk was full: the end of the output is lost")
		} else if ended {
			return nil
		}
	}
}

// showPieces sends the output that there is so far.
func (c *socket) showPieces(ctx context.Context, next func() (int64, error)) error {
	for ctx.Err() == nil {
		n, err := next()
		if missed := (spool.Missed{}); errors.As(err, &missed) {
			if err := c.tell(gap{"gap", missed.At[spool.Stdout], missed.At[spool.Stderr]}); err != nil {
				return err
			}
			continue
		}
		if err != nil || n == 0 {
			return err
		}
	}
	return ctx.Err()
}
