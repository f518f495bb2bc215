package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// execBody is the document that asks for a command.
type execBody struct {
	Cmd        []string          `json:"cmd"`
	Env        map[string]string `json:"env,omitempty"`
	WorkingDir string            `json:"working_dir,omitempty"`
	User       string            `json:"user,omitempty"`
	TTY        bool              `json:"tty,omitempty"`
	Cols       int               `json:"cols,omitempty"`
	Rows       int               `json:"rows,omitempty"`
	Stdin      string            `json:"stdin,omitempty"`
	StdinOpen  bool              `json:"stdin_open,omitempty"`
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
}

func newExecBody(o options.Exec) execBody {
	return execBody{
		Cmd: o.Cmd, Env: o.Env, WorkingDir: o.WorkingDir, User: o.User,
		TTY: o.TTY, Cols: o.Cols, Rows: o.Rows, StdinOpen: o.Stdin,
		TimeoutMS: int64((o.Timeout + time.Millisecond - 1) / time.Millisecond),
	}
}

// StartExec starts a command in a box. With o.Stdin its input stays open for
// [Client.Attach]. The request is never sent twice: if the connection is lost before
// the reply, the command may or may not run. Errors: BoxNotFound, InvalidState
// (the box is not running).
func (c *Client) StartExec(ctx context.Context, box string, o options.Exec) (api.Exec, error) {
	return c.exec(ctx, request{method: http.MethodPost, body: newExecBody(o)}, box, "", "exec")
}

// Exec returns a command by its id. Errors: BoxNotFound, ExecNotFound.
func (c *Client) Exec(ctx context.Context, box, id string) (api.Exec, error) {
	if err := checkExec(id); err != nil {
		return api.Exec{}, err
	}
	return c.exec(ctx, request{method: http.MethodGet, again: true}, box, "", "exec", id)
}

// Execs returns the recent commands of a box, newest first. Errors: BoxNotFound.
func (c *Client) Execs(ctx context.Context, box string) ([]api.Exec, error) {
	path, err := c.boxPath(box, "", "execs")
	if err != nil {
		return nil, err
	}
	query := url.Values{"page_size": {strconv.Itoa(pageSize)}}
	return pages(ctx, c, path, query, "execs", func(e api.Exec) string { return e.ID })
}

// CancelExec ends a command's whole process tree: SIGTERM, and SIGKILL after
// grace. Errors: BoxNotFound, ExecNotFound, InvalidState (it has ended).
func (c *Client) CancelExec(ctx context.Context, box, id string, grace time.Duration) (api.Exec, error) {
	if err := checkExec(id); err != nil {
		return api.Exec{}, err
	}
	body := map[string]int64{"grace_ms": grace.Milliseconds()}
	return c.exec(ctx, request{method: http.MethodPost, body: body}, box, ":cancel", "exec", id)
}

// SignalExec sends a signal to the command's own process, by its name: "HUP", "TERM",
// ... Errors: those of CancelExec.
func (c *Client) SignalExec(ctx context.Context, box, id, name string) (api.Exec, error) {
	if err := checkExec(id); err != nil {
		return api.Exec{}, err
	}
	body := map[string]string{"signal": name}
	return c.exec(ctx, request{method: http.MethodPost, body: body}, box, ":signal", "exec", id)
}

// ResizeExec sets the size of a command's terminal, whoever is attached. Errors:
// BoxNotFound, ExecNotFound, InvalidState (it has ended), InvalidArgument (it has
// no terminal).
func (c *Client) ResizeExec(ctx context.Context, box, id string, cols, rows int) (api.Exec, error) {
	if err := checkExec(id); err != nil {
		return api.Exec{}, err
	}
	body := map[string]int{"cols": cols, "rows": rows}
	return c.exec(ctx, request{method: http.MethodPost, body: body}, box, ":resize", "exec", id)
}

// WriteStdin writes what input returns to a command's input, and returns how many
// bytes the command's pipe has taken. It waits while the command does not read.
// The request is never sent twice. Errors: BoxNotFound, ExecNotFound, InvalidState
// (the command has ended or closed its input, or a client is attached, which
// writes it), InvalidArgument (it takes no input).
func (c *Client) WriteStdin(ctx context.Context, box, id string, input io.Reader) (int64, error) {
	if err := checkExec(id); err != nil {
		return 0, err
	}
	path, err := c.boxPath(box, "", "exec", id)
	if err != nil {
		return 0, err
	}
	var done api.Written
	err = c.call(ctx, request{method: http.MethodPost, path: path + ":write_stdin", stream: input}, &done)
	return done.Bytes, err
}

// CloseStdin ends a command's input; a terminal is sent control-D. Errors: those of
// WriteStdin.
func (c *Client) CloseStdin(ctx context.Context, box, id string) (api.Exec, error) {
	if err := checkExec(id); err != nil {
		return api.Exec{}, err
	}
	return c.exec(ctx, request{method: http.MethodPost}, box, ":close_stdin", "exec", id)
}

// exec sends a request whose reply is an exec; verb is added to the path.
func (c *Client) exec(ctx context.Context, r request, box, verb string, path ...string) (e api.Exec, err error) {
	if r.path, err = c.boxPath(box, "", path...); err != nil {
		return api.Exec{}, err
	}
	r.path += verb
	err = c.call(ctx, r, &e)
	return e, err
}

// known returns an error for a command that has ended without an exit code.
// Without it a caller could take the command for one that succeeded.
func known(code *int) error {
	if code == nil {
		return fault.New(fault.Engine, "the box's init died while the command ran, so how the command ended is unknown")
	}
	return nil
}

// checkExec refuses ids that would lead elsewhere as a segment of a path. Errors:
// ExecNotFound.
func checkExec(id string) error {
	if id == "" || id == "." || id == ".." {
		return fault.New(fault.ExecNotFound, "no exec %q", id)
	}
	return nil
}
