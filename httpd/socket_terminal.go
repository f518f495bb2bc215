package httpd

import (
	"context"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// The defaults of a terminal (contract, section 5).
const (
	defaultShell = "/bin/bash"
	otherShell   = "/bin/sh" // for an image without the default one
	defaultTerm  = "xterm-256color"
)

// hangUpGrace is the time between SIGHUP and SIGKILL for the processes of a shell
// whose client has gone.
const hangUpGrace = 5 * time.Second

// terminal runs a shell for one client. The shell is hung up when the client goes.
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
		ended, err = s.showShell(ctx, c, command)
		return err
	})
	interrupt(command.Stdin())
	c.ends.Wait()
	if !ended {
		return command.HangUp(context.Background(), hangUpGrace)
	}
	return nil
}

// shell returns the command for the shell that a client asks for, and whether the
// client named the shell itself.
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

// openShell starts the shell. If it can't be started and the client did not name
// it, openShell tries the shell that nearly every image has.
func openShell(ctx context.Context, box *core.Box, o options.Exec, named bool) (*core.Exec, error) {
	command, err := box.Exec(ctx, o)
	if err != nil || named || command.Record().PID != nil {
		return command, err
	}
	_ = command.Close()
	o.Cmd = []string{otherShell}
	return box.Exec(ctx, o)
}

// When a terminal shows much at once, its output is collected for a moment, so
// that many small pieces make one frame. The echo of a key is never delayed.
const (
	terminalBuffer = 32 << 10
	muchShown      = 64 << 10 // this many bytes without a pause of length still
	still          = 10 * time.Millisecond
	moment         = time.Millisecond
)

// shower sends the output of a terminal.
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

// showShell sends the terminal's output until the shell has ended. ended says
// whether it has, or its box, so that there is nothing to hang up.
func (s *Server) showShell(ctx context.Context, c *socket, command *core.Exec) (ended bool, err error) {
	if err := c.tell(ready{Type: "ready", ExecID: command.ID()}); err != nil {
		return false, err
	}
	to := shower{c: c}
	sink, done := s.recorded(command, to.show)
	defer done()
	end, err := command.Stream(ctx, make([]byte, terminalBuffer), sink)
	if err != nil {
		return false, err
	}
	if end.Status == api.ExecLost {
		return true, fault.New(fault.Engine, "the box has gone, and the shell with it")
	}
	return true, c.exit(command.Record().Ended(end))
}
