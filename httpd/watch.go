package httpd

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/gorilla/websocket"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// watchFiles streams the events of a directory of a box: as Server-Sent Events, or
// over a WebSocket to a client that asks for one.
func (s *Server) watchFiles(w http.ResponseWriter, r *request) error {
	query, err := r.pathQuery()
	if err != nil {
		return err
	}
	o := options.WatchFiles{Path: query.Get("path"), User: query.Get("user")}
	if o.Recursive, err = flag(query, "recursive"); err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	watch, err := box.WatchFiles(ctx, o)
	if err != nil {
		return s.brokenOff(err)
	}
	defer func() { _ = watch.Close() }()
	if websocket.IsWebSocketUpgrade(r.Request) {
		return s.watchBySocket(ctx, w, r, watch)
	}
	kind := func(e api.FileEvent) string { return string(e.Type) }
	err = feedStream[api.FileEvent]{beginEvents(w), watch, kind}.run(ctx, s)
	if errors.Is(err, errGone) { // nobody is left to tell
		return nil
	}
	return err
}

// feedStream writes the things of a feed as events to one client.
type feedStream[T any] struct {
	eventWriter
	from interface {
		Next(ctx context.Context) (T, error)
		Ready() bool
	}
	kind func(T) string // of an event
}

// run writes events until the last one, or until ctx ends. It flushes before it
// waits.
func (o feedStream[T]) run(ctx context.Context, s *Server) error {
	for {
		if !o.from.Ready() && o.flush() != nil {
			return errGone
		}
		wait, cancel := context.WithTimeout(ctx, s.Heartbeat)
		e, err := o.from.Next(wait)
		quiet := wait.Err() != nil
		cancel()
		switch {
		case err == nil:
			err = o.event(e)
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return o.write([]byte(": the service ends\n\n"))
		case quiet:
			err = o.write([]byte(": alive\n\n"))
		}
		if err != nil {
			return err
		}
	}
}

// event writes one event.
func (o feedStream[T]) event(e T) error {
	doc, err := encode(e)
	if err != nil {
		return err
	}
	text := append([]byte("event: "), o.kind(e)...)
	text = append(append(text, "\ndata: "...), doc...)
	return o.write(append(text, "\n\n"...))
}

// watchBySocket sends each event as a text frame. The client sends none.
func (s *Server) watchBySocket(ctx context.Context, w http.ResponseWriter, r *request, watch *core.FileWatch) error {
	c, err := s.upgrade(w, r)
	if err != nil {
		return err
	}
	none := actions{}.guarded(func() error { return fault.New(fault.InvalidArgument, "a watch takes no frames") })
	_ = c.serve(ctx, none, func(ctx context.Context) error { // the client was told
		for {
			e, err := watch.Next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = c.tell(e)
			}
			if err != nil {
				return err
			}
		}
	})
	c.ends.Wait()
	return nil
}
