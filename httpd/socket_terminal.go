package httpd

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sandbox/api"
	"sandbox/console"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/spool"
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

// terminal runs a shell for one client. The shell is hung up when the client goes
// without a word, unless it is to be kept; one that detaches leaves it running. When
// this service ends, or the client's session of the web console, the shell goes on,
// as every exec does.
func (s *Server) terminal(w http.ResponseWriter, r *request) error {
	sh, err := r.shell()
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
	e, a, err := s.openTerminal(r.Context(), box, sh)
	if err != nil {
		return err
	}
	defer a.Close()
	c, err := s.upgrade(w, r)
	if err != nil {
		return errors.Join(err, hangUp(e, 0))
	}
	ctx, cancel := s.streaming(r)
	defer cancel()
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	err = c.serve(ctx, actionsOf(ctx, writing, e, a), func(ctx context.Context) error { return c.showTerminal(ctx, e, a) })
	c.end(stop)
	if err == nil || sh.keep || errors.Is(err, errDetached) || errors.Is(err, console.ErrEnded) || s.draining.Err() != nil {
		return nil
	}
	return hangUp(e, hangUpGrace) // the client was told
}

// openTerminal starts a shell, whose output goes to the spool as that of any exec,
// and attaches its client.
func (s *Server) openTerminal(ctx context.Context, box *core.Box, sh shell) (*spool.Exec, *spool.Attached, error) {
	command, err := openShell(ctx, box, sh)
	if err != nil {
		return nil, nil, err
	}
	e, err := s.Spool.Start(command, true)
	if err != nil {
		return nil, nil, err
	}
	a, err := e.AttachOwner()
	if err != nil {
		return nil, nil, errors.Join(err, hangUp(e, 0))
	}
	return e, a, nil
}

// hangUp ends what runs on a terminal whose client has gone. A shell that has ended
// has nothing to hang up.
func hangUp(e *spool.Exec, grace time.Duration) error {
	err := e.HangUp(context.Background(), grace)
	if fault.Is(err, fault.InvalidState) {
		return nil
	}
	return err
}

// shell is the shell that a client asks for.
type shell struct {
	options.Exec
	named bool // by the client itself
	keep  bool // it goes on when its client has vanished
}

// shell reads it from the query. Errors: Malformed, InvalidArgument.
func (r *request) shell() (shell, error) {
	sh := shell{Exec: options.Exec{Cmd: []string{defaultShell}, TTY: true, Cols: 80, Rows: 24, Env: map[string]string{"TERM": defaultTerm}}}
	query, err := r.query()
	if err != nil {
		return sh, err
	}
	if query.Get("shell") != "" {
		sh.Cmd, sh.named = []string{query.Get("shell")}, true
	}
	if query.Get("term") != "" {
		sh.Env["TERM"] = query.Get("term")
	}
	if err := number(query, "cols", &sh.Cols, 1, maxSide); err != nil {
		return sh, err
	}
	if err := number(query, "rows", &sh.Rows, 1, maxSide); err != nil {
		return sh, err
	}
	if sh.keep, err = flag(query, "keep"); err != nil {
		return sh, err
	}
	return sh, sh.Check()
}

// openShell starts the shell. If it can't be started and the client did not name
// it, openShell tries the shell that nearly every image has.
func openShell(ctx context.Context, box *core.Box, sh shell) (*core.Exec, error) {
	command, err := box.Exec(ctx, sh.Exec)
	if err != nil || sh.named || command.Record().PID != nil {
		return command, err
	}
	_ = command.Close()
	sh.Cmd = []string{otherShell}
	return box.Exec(ctx, sh.Exec)
}

// showTerminal sends what the terminal shows until the shell has ended, and then
// its exit.
func (c *socket) showTerminal(ctx context.Context, e *spool.Exec, a *spool.Attached) error {
	if err := c.tell(ready{Type: "ready", ExecID: e.Record().ID}); err != nil {
		return err
	}
	if err := c.showAttached(ctx, a, false); err != nil {
		return err
	}
	rec := e.Record()
	if rec.Status == api.ExecLost {
		return fault.New(fault.Engine, "the box has gone, and the shell with it")
	}
	return c.exit(rec)
}
