// Package mcp offers boxes as the tools of a Model Context Protocol server, so that a
// language model can run code in them. [Server.Serve] talks to one client over two
// streams, [Server.Handler] to any number over HTTP. The boxes that a session makes
// end with it.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandbox/backend"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Config holds the parts and settings of a server.
type Config struct {
	Boxes backend.Boxes // what the tools work on; the caller closes them after the server
	Limits
	// Logs answers one statement over the log table with the document of the
	// contract. nil means that there are no logs, and no tool for them.
	Logs func(ctx context.Context, sql string, parameters map[string]any) (json.RawMessage, error)
	// Log is told the failures that are our own fault, which clients then don't
	// read. nil means that clients read them.
	Log *slog.Logger
}

// Limits are what the operator decides, and no client.
type Limits struct {
	// Box is what every box of a session is like. Its image is for those that
	// name none.
	Box        options.Box
	MaxBoxes   int           // of a session at a time
	Timeout    time.Duration // of a command that names none
	MaxTimeout time.Duration // that a command may name
	MaxOutput  int           // bytes of one stream, file or log result that a reply has
	// Shared are the names and ids of boxes that every session may use. They are
	// never removed.
	Shared []string
	Idle   time.Duration // after which a session over HTTP ends
}

// DefaultLimits returns the limits that hold unless the operator sets others.
func DefaultLimits() Limits {
	l := Limits{
		Box: options.Defaults(), MaxBoxes: 8, Timeout: time.Minute, MaxTimeout: 10 * time.Minute,
		MaxOutput: 64 << 10, Idle: 30 * time.Minute,
	}
	l.Box.Image, l.Box.AutoRemove = options.DefaultImage, true
	return l
}

// Check refuses limits with which no tool could work. Errors: InvalidArgument.
func (l Limits) Check() error {
	for name, n := range map[string]int64{
		"the most boxes of a session": int64(l.MaxBoxes), "the most output of a reply": int64(l.MaxOutput),
		"the time of a command": int64(l.Timeout), "the time of an idle session": int64(l.Idle),
	} {
		if n <= 0 {
			return fault.New(fault.InvalidArgument, "%s must be more than 0", name)
		}
	}
	if l.Timeout > l.MaxTimeout {
		return fault.New(fault.InvalidArgument, "the time of a command is %v and must be at most the longest, which is %v", l.Timeout, l.MaxTimeout)
	}
	return l.Box.Check()
}

// Server answers the calls of clients. Its owner calls Close.
type Server struct {
	Config
	tools *sdk.Server

	life context.Context // of all calls
	end  context.CancelFunc

	mu       sync.Mutex
	handlers map[string]http.Handler // by owner
	sessions map[*sdk.ServerSession]*session
	ending   sync.WaitGroup // what removes the boxes of the sessions
}

// New makes a server. Errors: InvalidArgument (a limit is not possible).
func New(c Config) (*Server, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &Server{Config: c, handlers: map[string]http.Handler{}, sessions: map[*sdk.ServerSession]*session{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.tools = sdk.NewServer(&sdk.Implementation{Name: "sandbox", Title: "Isolated Linux boxes", Version: core.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}, // the tools never change
	})
	return s, s.addTools()
}

// Serve answers the one client behind in and out until it leaves, or until ctx ends,
// and removes the boxes that it made. Errors: Canceled, Malformed (the client does not
// speak the protocol).
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	defer context.AfterFunc(ctx, s.end)() // a call in flight would hold up the end of the session
	err := s.tools.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}})
	s.ending.Wait()
	if ctx.Err() != nil {
		return fault.Wrap(fault.Canceled, ctx.Err(), "serve the client")
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fault.Wrap(fault.Malformed, err, "read what the client sends")
}

// Close ends all sessions and removes the boxes that they made. ctx bounds the wait.
func (s *Server) Close(ctx context.Context) error {
	s.end()
	s.mu.Lock()
	open := len(s.sessions) > 0
	s.mu.Unlock()
	var closing sync.WaitGroup
	for session := range s.tools.Sessions() {
		open = true
		closing.Go(func() { _ = session.Close() }) // the connection is gone, which is what was asked for
	}
	if !open {
		return nil // ctx may have ended already, and there is nothing to wait for
	}
	done := make(chan struct{})
	go func() {
		closing.Wait()
		s.ending.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done: // at the same time
		return nil
	default:
		return fmt.Errorf("end the sessions of MCP: %w", ctx.Err())
	}
}

// session returns the session of a call, and removes its boxes when it ends.
func (s *Server) session(of *sdk.ServerSession) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sessions[of]
	if known == nil {
		known = &session{Server: s, boxes: map[string]string{}}
		s.sessions[of] = known
		s.ending.Go(func() {
			_ = of.Wait() // returns when no call is in flight any more
			known.close()
			s.mu.Lock()
			delete(s.sessions, of)
			s.mu.Unlock()
		})
	}
	return known
}

// unclosed is an output that its owner closes.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }
