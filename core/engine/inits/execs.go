package inits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/ids"
)

// maxListing bounds the bytes that an init may send as the list of its execs:
// more than it ever keeps, and too little to harm this process.
const maxListing = 32 << 20

// Execs returns the last execs of a box, newest first; see [core.Execs].
func (c *Client) Execs(ctx context.Context, id string) ([]api.Exec, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := c.boxes.Dial(ctx, id, true)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Cut)()
	recs, err := list(conn)
	if err != nil {
		return nil, c.boxes.Explain(id, errors.Join(ctx.Err(), err))
	}
	for i := range recs {
		recs[i].BoxID = id
	}
	return recs, nil
}

func list(conn *wire.Conn) ([]api.Exec, error) {
	if err := conn.Send(wire.TypeExecs, nil); err != nil {
		return nil, err
	}
	recs := []api.Exec{}
	for size := 0; ; {
		f, err := conn.Recv()
		if err != nil {
			return nil, err
		}
		if f.Type == wire.TypeListed {
			f.CloseFDs()
			return recs, nil
		}
		rec, err := recordOf(f)
		if err != nil {
			return nil, err
		}
		rec.Env = nil
		recs = append(recs, rec)
		if size += len(f.Body); len(recs) > wire.MaxExecs || size > maxListing {
			return nil, fmt.Errorf("%w: the list has more execs than there can be", wire.ErrProtocol)
		}
	}
}

// FindExec returns one exec; see [core.Execs].
func (c *Client) FindExec(ctx context.Context, id, execID string) (api.Exec, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return c.ask(ctx, id, execID, wire.TypeFind, wire.Find{ID: execID})
}

// AwaitExec waits for the end of an exec; see [core.Execs].
func (c *Client) AwaitExec(ctx context.Context, id, execID string) (api.Exec, error) {
	return c.ask(ctx, id, execID, wire.TypeAwait, wire.Find{ID: execID})
}

// CancelExec ends an exec and waits for its end; see [core.Execs].
func (c *Client) CancelExec(ctx context.Context, id, execID string, grace time.Duration) (api.Exec, error) {
	return c.ask(ctx, id, execID, wire.TypeEnd, wire.End{ID: execID, GraceMS: grace.Milliseconds()})
}

// SignalExec sends a signal to an exec's own process; see [core.Execs].
func (c *Client) SignalExec(ctx context.Context, id, execID string, sig int) (api.Exec, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return c.ask(ctx, id, execID, wire.TypeKill, wire.Kill{ID: execID, Signal: sig})
}

// InterruptExec sends SIGINT to the process group of an exec; see [core.Execs].
func (c *Client) InterruptExec(ctx context.Context, id, execID string) (api.Exec, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return c.ask(ctx, id, execID, wire.TypeKill, wire.Kill{ID: execID, Signal: int(unix.SIGINT), Group: true})
}

// ask sends init a request about one exec and returns the exec. Except for a
// Find and a Kill, it waits until the exec has ended. If the box dies meanwhile, the exec
// is returned as lost.
func (c *Client) ask(ctx context.Context, id, execID string, t wire.Type, request any) (api.Exec, error) {
	if !ids.Exec.Valid(execID) {
		if _, err := c.boxes.Get(ctx, id); err != nil {
			return api.Exec{}, err
		}
		return api.Exec{}, errNoExec(id, execID)
	}
	conn, err := c.boxes.Dial(ctx, id, true)
	if err != nil {
		return api.Exec{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Cut)()
	rec, err := await(conn, t, request)
	if err == nil && rec.ID != execID {
		err = fmt.Errorf("%w: got another exec than was asked for", wire.ErrProtocol)
	}
	if err != nil {
		return api.Exec{}, c.boxes.Explain(id, errors.Join(ctx.Err(), err))
	}
	if ctx.Err() != nil && rec.Status == api.ExecLost {
		return api.Exec{}, fault.Of(ctx.Err()) // the end of ctx cut the connection, not the box
	}
	rec.BoxID = id
	return rec, nil
}

func await(conn *wire.Conn, t wire.Type, request any) (rec api.Exec, err error) {
	if err := conn.Send(t, request); err != nil {
		return rec, err
	}
	for {
		f, err := conn.Recv()
		if err != nil && rec.ID != "" && wire.CutOff(err) {
			return rec.Ended(lost()), nil
		}
		if err != nil {
			return rec, err
		}
		if rec, err = recordOf(f); err != nil || t == wire.TypeFind || t == wire.TypeKill || rec.Status != api.ExecRunning {
			return rec, err
		}
	}
}

// recordOf returns the exec that a frame carries, or the failure that init sent
// instead.
func recordOf(f wire.Frame) (api.Exec, error) {
	f.CloseFDs()
	if f.Type == wire.TypeError {
		return api.Exec{}, believed(f.Failure())
	}
	var e wire.Exec
	if f.Type != wire.TypeExec {
		return api.Exec{}, fmt.Errorf("%w: got frame %d, want an exec", wire.ErrProtocol, f.Type)
	}
	if err := f.Decode(&e); err != nil {
		return api.Exec{}, err
	}
	return execRecord(e)
}

// execRecord returns what an init says of an exec, or an error if it is
// invalid: the init may be hostile.
func execRecord(e wire.Exec) (api.Exec, error) {
	if !ids.Exec.Valid(e.ID) {
		return api.Exec{}, fmt.Errorf("%w: %.40q is not an exec id", wire.ErrProtocol, e.ID)
	}
	rec := api.Exec{
		ID: e.ID, Status: api.ExecRunning, Cmd: e.Cmd, Env: e.Env, WorkingDir: e.WorkingDir, User: e.User,
		TTY: e.TTY, Main: e.Main, CreatedAt: e.CreatedAt.UTC(),
	}
	if e.PID > 0 {
		rec.PID = &e.PID
	}
	if e.TimeoutMS > 0 {
		rec.TimeoutMS = &e.TimeoutMS
	}
	if e.End == nil {
		return rec, nil
	}
	status, err := exitStatus(*e.End)
	return rec.Ended(status), err
}

// ends are the statuses that init may report for an exec that has ended.
var ends = []api.ExecStatus{api.ExecSucceeded, api.ExecFailed, api.ExecCanceled, api.ExecTimedOut}

// exitStatus returns what an init says of the end of a command, or an error if
// it is invalid.
func exitStatus(s api.ExitStatus) (api.ExitStatus, error) {
	if !slices.Contains(ends, s.Status) {
		return s, fmt.Errorf("%w: a command can't end as %.40q", wire.ErrProtocol, s.Status)
	}
	s.FinishedAt = s.FinishedAt.UTC()
	return s, nil
}

// lost returns the exit status of a command whose box's init has ended.
func lost() api.ExitStatus {
	return api.ExitStatus{Status: api.ExecLost, FinishedAt: time.Now().UTC()}
}

func errNoExec(id, execID string) error {
	return fault.New(fault.ExecNotFound, "box %s has no exec %.60q", id, execID)
}
