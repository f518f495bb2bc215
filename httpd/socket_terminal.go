package httpd

import (
	"context"
	"net/http"
	"time"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// The defaults of a terminal (contract, section 5).
const (
	defaultShell = "/bin/bash"
	otherShell   = "/bin/sh" // where an image has not the default one
	defaultTerm  = "xterm-256color"
)

// hangUpGrace is what is left of a shell whose client has gone gets.
const hangUpGrace = 5 * time.Second

// terminal runs a shell for one client, and hangs it up with it.
func (s *Server) terminal(w http.ResponseWriter, r *request) error {
	o, named, err := r.shell()
	if err != nil {
		return err
	}
	box, err := s.box(r)
	if err != nil {
		return err
	}
	if err := r.mustUpgrade(); err != nil {
		return err
	}
	command, err := openShell(r.Context(), box, o, named)
	if err != nil {
		return err
	}
	defer command.Close()
	c, err := s.upgrade(w, r)
	if err != nil {
		_ = command.HangUp(context.Background(), 0)
		return err
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	on := consoleOf(ctx, true, true, func() (*core.Exec, error) { return command, nil })
	var ended bool
	_ = c.serve(ctx, on, func(ctx context.Context) (err error) { // the client was told
		ended, err = c.showShell(ctx, command)
		return err
	})
	interrupt(command.Stdin())
	c.ends.Wait()
	if !ended {
		return command.HangUp(context.Background(), hangUpGrace)
	}
	return nil
}

// shell returns what a client asks for, and whether it named the shell.
func (r *request) shell() (o options.Exec, named bool, err error) {
	query, err := r.query()
	if err != nil {
		return o, false, err
	}
	o = options.Exec{Cmd: []string{defaultShell}, TTY: true, Cols: 80, Rows: 24, Env: map[string]string{"TERM": defaultTerm}}
	if query.Get("shell") != "" {
		o.Cmd, named = []string{query.Get("shell")}, true
	}
	if query.Get("term") != "" {
		o.Env["TERM"] = query.Get("term")
	}
	if err := number(query, "cols", &o.Cols, 1, maxSide); err != nil {
		return o, named, err
	}
	if err := number(query, "rows", &o.Rows, 1, maxSide); err != nil {
		return o, named, err
	}
	return o, named, o.Check()
}

// openShell starts the shell, or the one that every image has where the
// client did not name one.
func openShell(ctx context.Context, box *core.Box, o options.Exec, named bool) (*core.Exec, error) {
	command, err := box.Exec(ctx, o)
	if err != nil || named || command.Record().PID != nil {
		return command, err
	}
	_ = command.Close()
	o.Cmd = []string{otherShell}
	return box.Exec(ctx, o)
}

// What a terminal shows at length is gathered for a moment, so that many small
// pieces make one frame. An answer to a key never is.
const (
	terminalBuffer = 32 << 10
	muchShown      = 64 << 10 // without a pause as long as still
	still          = 10 * time.Millisecond
	moment         = time.Millisecond
)

// shower sends what a terminal shows.
type shower struct {
	c     *socket
	shown int
	last  time.Time
}

func (s *shower) show(_ bool, p []byte) error {
	now := time.Now()
	if now.Sub(s.last) > still {
		s.shown = 0
	}
	s.last, s.shown = now, s.shown+len(p)
	if err := s.c.write(p); err != nil {
		return err
	}
	if s.shown > muchShown && len(p) < terminalBuffer {
		time.Sleep(moment)
	}
	return nil
}

// showShell sends what the terminal shows until the shell has ended.
func (c *socket) showShell(ctx context.Context, command *core.Exec) (ended bool, err error) {
	if err := c.tell(ready{Type: "ready", ExecID: command.ID()}); err != nil {
		return false, err
	}
	to := shower{c: c}
	end, err := command.Stream(ctx, make([]byte, terminalBuffer), to.show)
	if err != nil {
		return false, err
	}
	if end.State == core.ExecLost {
		return true, fault.New(fault.Engine, "the box has gone, and the shell with it")
	}
	return true, c.exit(command.Record().Ended(end))
}
