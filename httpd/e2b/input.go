package e2b

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"sandbox/core/fault"
	"sandbox/httpd/e2b/protocol"
	"sandbox/spool"
)

// sendInput writes to a command's input, or to its terminal.
func (s *Server) sendInput(ctx context.Context, q *connect.Request[protocol.SendInputRequest]) (*protocol.SendInputResponse, error) {
	e, err := s.spooled(ctx, visitOf(ctx).box, q.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	return &protocol.SendInputResponse{}, write(ctx, e, q.Msg.GetInput())
}

// write writes a piece of input. A terminal has one input, whatever a client calls it.
func write(ctx context.Context, e *spool.Exec, input *protocol.ProcessInput) error {
	piece := input.GetStdin()
	if e.Record().TTY && input.GetPty() != nil {
		piece = input.GetPty()
	}
	_, err := e.WriteStdin(ctx, bytes.NewReader(piece), false)
	return err
}

// closeStdin ends a command's input.
func (s *Server) closeStdin(ctx context.Context, q *connect.Request[protocol.CloseStdinRequest]) (*protocol.CloseStdinResponse, error) {
	e, err := s.spooled(ctx, visitOf(ctx).box, q.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	return &protocol.CloseStdinResponse{}, e.CloseStdin(ctx)
}

// streamInput writes what a client sends to the input of the command that its first
// message selects. The input stays open behind the last one. It returns early when the
// server ends; see interruptible.
func (s *Server) streamInput(ctx context.Context, in *connect.ClientStream[protocol.StreamInputRequest]) error {
	ctx, cancel := s.streaming(ctx)
	defer cancel()
	var e *spool.Exec
	for in.Receive() {
		var err error
		switch event := in.Msg().GetEvent().(type) {
		case *protocol.StreamInputRequest_Start:
			e, err = s.spooled(ctx, visitOf(ctx).box, event.Start.GetProcess())
		case *protocol.StreamInputRequest_Data:
			if e == nil {
				return fault.New(fault.InvalidArgument, "the first message must select a process")
			}
			err = write(ctx, e, event.Data.GetInput())
		}
		if err != nil {
			return err
		}
	}
	if in.Err() != nil && s.draining.Err() != nil {
		return s.draining.Err()
	}
	return in.Err()
}

// interruptible ends the reading of a client's stream when the server begins to close:
// a message is waited for whatever the context says.
func (s *Server) interruptible(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		defer context.AfterFunc(s.draining, func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })()
		next.ServeHTTP(w, r)
	})
}
