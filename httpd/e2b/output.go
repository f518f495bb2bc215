package e2b

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"connectrpc.com/connect"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/httpd/e2b/protocol"
	"sandbox/spool"
)

// following writes the events of a command to one client.
type following struct {
	s    *Server
	e    *spool.Exec
	send func(*protocol.ProcessEvent) error
}

// maxPiece is the most bytes of output that one event carries.
const maxPiece = 32 << 10

// run writes the output behind so many bytes of each stream, and then the end. It
// returns early when the client goes or its time is over. Errors: those of ctx;
// DataLoss of Connect's.
func (f following) run(ctx context.Context, v visit, skip [2]int64) error {
	ctx, cancel := f.s.streaming(ctx)
	defer cancel()
	output, err := f.e.Observe(skip)
	if err != nil {
		return err
	}
	defer output.Close()
	pid := &protocol.ProcessEvent_Start{Start: &protocol.ProcessEvent_StartEvent{Pid: pidOf(f.e.Record())}}
	if err := f.send(&protocol.ProcessEvent{Event: pid}); err != nil {
		return err
	}
	quiet, buf := quietTime(v.header), make([]byte, maxPiece)
	for {
		stream, n, err := output.Next(buf)
		if err != nil {
			return lost(err)
		}
		if n > 0 {
			if err := f.piece(stream, buf[:n]); err != nil {
				return err
			}
			continue
		}
		if ended, lost := output.Ended(); ended && lost {
			return errLostEnd()
		} else if ended {
			return f.end()
		}
		if err := f.wait(ctx, output, quiet); err != nil {
			return err
		}
	}
}

// pidOf returns the command's process id in the box; 0 for one that was not started.
func pidOf(rec api.Exec) uint32 {
	if rec.PID == nil {
		return 0
	}
	return uint32(*rec.PID)
}

// lost tells a client that output was dropped before it was read: a stream with a
// gap would look whole.
func lost(err error) error {
	var missed spool.Missed
	if errors.As(err, &missed) {
		return connect.NewError(connect.CodeDataLoss, missed)
	}
	return err
}

// errLostEnd tells a client that the end of the output could not be kept.
func errLostEnd() error {
	return connect.NewError(connect.CodeDataLoss, errors.New("the disk was full: the end of the output is lost"))
}

// piece writes a piece of output.
func (f following) piece(stream spool.Stream, p []byte) error {
	var data protocol.ProcessEvent_DataEvent
	switch {
	case f.e.Record().TTY:
		data.Output = &protocol.ProcessEvent_DataEvent_Pty{Pty: p}
	case stream == spool.Stderr:
		data.Output = &protocol.ProcessEvent_DataEvent_Stderr{Stderr: p}
	default:
		data.Output = &protocol.ProcessEvent_DataEvent_Stdout{Stdout: p}
	}
	return f.send(&protocol.ProcessEvent{Event: &protocol.ProcessEvent_Data{Data: &data}})
}

// wait waits for output or the end, and writes a sign of life when it takes long.
func (f following) wait(ctx context.Context, output *spool.Observer, quiet time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	err := output.Wait(waiting)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	alive := &protocol.ProcessEvent_Keepalive{Keepalive: &protocol.ProcessEvent_KeepAlive{}}
	return f.send(&protocol.ProcessEvent{Event: alive})
}

// end waits for the record of how the command ended and writes it.
func (f following) end() error {
	rec := f.e.Record()
	end := &protocol.ProcessEvent_EndEvent{Exited: rec.Signal == nil, Status: "exit status 0"}
	if rec.Status == api.ExecTimedOut {
		return fault.New(fault.Timeout, "the command was ended when its time was over")
	}
	if rec.ExitCode == nil || rec.Reason != nil && *rec.Reason == api.ReasonBoxStopped {
		return fault.New(fault.BoxNotFound, "the sandbox %s was not found any more: it ended under the command", rec.BoxID)
	}
	end.ExitCode = int32(*rec.ExitCode)
	switch {
	case rec.Signal != nil:
		end.Status = "signal: " + unix.SignalName(unix.Signal(*rec.Signal))
		end.Error = &end.Status
	case end.ExitCode != 0:
		end.Status = fmt.Sprintf("exit status %d", end.ExitCode)
		end.Error = &end.Status
	}
	return f.send(&protocol.ProcessEvent{Event: &protocol.ProcessEvent_End{End: end}})
}

const (
	defaultQuiet = 90 * time.Second
	minQuiet     = time.Second
)

// quietTime returns how long a stream may be quiet before it has a sign of life.
func quietTime(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Keepalive-Ping-Interval"))
	if err != nil || seconds <= 0 || seconds > int(defaultQuiet/time.Second) {
		return defaultQuiet
	}
	return max(time.Duration(seconds)*time.Second, minQuiet)
}
