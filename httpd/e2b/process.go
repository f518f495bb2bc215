package e2b

import (
	"context"
	"maps"
	"time"

	"connectrpc.com/connect"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
	"sandbox/httpd/e2b/protocol"
	"sandbox/spool"
)

// listProcesses lists the commands that run in a box, whoever has started them.
func (s *Server) listProcesses(ctx context.Context, _ *connect.Request[protocol.ListRequest]) (*protocol.ListResponse, error) {
	recs, err := visitOf(ctx).box.Execs(ctx)
	if err != nil {
		return nil, err
	}
	var list protocol.ListResponse
	for _, rec := range recs {
		if rec.Status != api.ExecRunning || rec.PID == nil {
			continue
		}
		list.Processes = append(list.Processes, &protocol.ProcessInfo{
			Pid:    uint32(*rec.PID),
			Config: &protocol.ProcessConfig{Cmd: rec.Cmd[0], Args: rec.Cmd[1:], Cwd: &rec.WorkingDir},
		})
	}
	return &list, nil
}

// startProcess starts a command and follows it. The command outlives its client, but
// not the time that the client gives it.
func (s *Server) startProcess(ctx context.Context, q *connect.Request[protocol.StartRequest], out *connect.ServerStream[protocol.StartResponse]) error {
	v := visitOf(ctx)
	if q.Msg.Tag != nil {
		return fault.New(fault.Unsupported, "unimplemented: processes have no tags: select one by its pid")
	}
	o, err := s.command(ctx, v, q.Msg)
	if err != nil {
		return err
	}
	command, err := v.box.Exec(ctx, o)
	if err != nil {
		return err
	}
	e, err := s.Spool.Start(command, o.Stdin)
	if err != nil {
		return err
	}
	follow := following{s: s, e: e, send: func(event *protocol.ProcessEvent) error {
		return out.Send(&protocol.StartResponse{Event: event})
	}}
	return follow.run(ctx, v, [2]int64{})
}

// command returns the options of the command that is asked for. Errors:
// InvalidArgument.
func (s *Server) command(ctx context.Context, v visit, q *protocol.StartRequest) (options.Exec, error) {
	user, err := s.account(ctx, v.box, named(v.header, ""))
	if err != nil {
		return options.Exec{}, err
	}
	c := q.GetProcess()
	o := options.Exec{
		Cmd: append([]string{c.GetCmd()}, c.GetArgs()...), User: user.name, WorkingDir: user.under(c.GetCwd()),
		Env:   map[string]string{"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": v.box.ID()},
		Stdin: q.Stdin == nil || *q.Stdin,
	}
	maps.Copy(o.Env, c.GetEnvs())
	if pty := q.GetPty(); pty != nil {
		o.TTY, o.Stdin = true, true
		o.Cols, o.Rows = int(pty.GetSize().GetCols()), int(pty.GetSize().GetRows())
	}
	o.KeepStdin = o.Stdin
	if end, ok := ctx.Deadline(); ok {
		o.Timeout = max(time.Until(end), time.Millisecond)
	}
	return o, o.Check()
}

// connectProcess follows a command from now on.
func (s *Server) connectProcess(ctx context.Context, q *connect.Request[protocol.ConnectRequest], out *connect.ServerStream[protocol.ConnectResponse]) error {
	v := visitOf(ctx)
	e, err := s.spooled(ctx, v.box, q.Msg.GetProcess())
	if err != nil {
		return err
	}
	follow := following{s: s, e: e, send: func(event *protocol.ProcessEvent) error {
		return out.Send(&protocol.ConnectResponse{Event: event})
	}}
	rec := e.Record()
	return follow.run(ctx, v, [2]int64{orZero(rec.StdoutBytes), orZero(rec.StderrBytes)})
}

// selected returns the record of the running command that a call selects. Errors:
// ExecNotFound, Unsupported.
func selected(ctx context.Context, box *core.Box, which *protocol.ProcessSelector) (api.Exec, error) {
	if _, tag := which.GetSelector().(*protocol.ProcessSelector_Tag); tag {
		return api.Exec{}, fault.New(fault.Unsupported, "unimplemented: processes have no tags: select one by its pid")
	}
	recs, err := box.Execs(ctx)
	if err != nil {
		return api.Exec{}, err
	}
	for _, rec := range recs {
		if rec.Status == api.ExecRunning && rec.PID != nil && uint32(*rec.PID) == which.GetPid() {
			return rec, nil
		}
	}
	return api.Exec{}, fault.New(fault.ExecNotFound, "no command with the pid %d runs", which.GetPid())
}

// spooled returns the command that a call selects, whose output the daemon has, or the
// shim if it is the box's main command.
// Errors: those of selected; InvalidState (another program has started it).
func (s *Server) spooled(ctx context.Context, box *core.Box, which *protocol.ProcessSelector) (*spool.Exec, error) {
	rec, err := selected(ctx, box, which)
	if err != nil {
		return nil, err
	}
	from := s.Spool
	if rec.Main && s.Mains != nil {
		from = s.Mains
	}
	e, err := from.Get(box.ID(), rec.ID)
	if fault.Is(err, fault.ExecNotFound) {
		return nil, fault.New(fault.InvalidState, "the command with the pid %d was started by another program, which has its output", which.GetPid())
	}
	return e, err
}

// updateProcess sets the size of a terminal.
func (s *Server) updateProcess(ctx context.Context, q *connect.Request[protocol.UpdateRequest]) (*protocol.UpdateResponse, error) {
	e, err := s.spooled(ctx, visitOf(ctx).box, q.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	size := q.Msg.GetPty().GetSize()
	if size.GetCols() == 0 || size.GetRows() == 0 || size.GetCols() > maxSide || size.GetRows() > maxSide {
		return nil, fault.New(fault.InvalidArgument, "a terminal has from 1 to %d columns and rows", maxSide)
	}
	return &protocol.UpdateResponse{}, e.Resize(ctx, int(size.GetCols()), int(size.GetRows()))
}

// maxSide bounds the columns and the rows of a terminal.
const maxSide = 65535

// sendSignal sends a signal to a command's own process.
func (s *Server) sendSignal(ctx context.Context, q *connect.Request[protocol.SendSignalRequest]) (*protocol.SendSignalResponse, error) {
	sig := q.Msg.GetSignal()
	if sig != protocol.Signal_SIGNAL_SIGTERM && sig != protocol.Signal_SIGNAL_SIGKILL {
		return nil, fault.New(fault.InvalidArgument, "the signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL")
	}
	box := visitOf(ctx).box
	rec, err := selected(ctx, box, q.Msg.GetProcess())
	if err != nil {
		return nil, err
	}
	_, err = box.Signal(ctx, rec.ID, int(sig))
	if fault.Is(err, fault.InvalidState) { // it has ended since
		err = fault.New(fault.ExecNotFound, "no command with the pid %d runs", q.Msg.GetProcess().GetPid())
	}
	return &protocol.SendSignalResponse{}, err
}
