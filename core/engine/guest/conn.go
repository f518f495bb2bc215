package guest

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// handle serves one connection: it answers one request and, if that made the
// connection the reader of an exec, serves the exec's reader too.
func (g *guest) handle(conn *wire.Conn) {
	defer conn.Close()
	f, err := conn.Recv()
	if err != nil {
		return
	}
	f.CloseFDs() // no request has descriptors
	if uses(f.Type) {
		g.enter()
		defer g.leave()
	}
	switch f.Type {
	case wire.TypeConfig:
		err = g.handleConfig(conn, f)
	case wire.TypeStart:
		err = g.handleStart(conn, f)
	case wire.TypeAttach:
		err = g.handleAttach(conn, f)
	case wire.TypeStop:
		var r wire.Stop
		if err = f.Decode(&r); err == nil {
			g.stop(conn, milliseconds(r.GraceMS))
		}
	case wire.TypePause, wire.TypeResume:
		err = g.handlePause(conn, f.Type == wire.TypePause)
	case wire.TypeIdle:
		err = g.handleIdle(conn, f)
	case wire.TypeSupervise:
		err = g.handleSupervise(conn, f)
	case wire.TypeExecs:
		err = g.handleExecs(conn)
	case wire.TypeFind, wire.TypeAwait:
		err = g.handleFind(conn, f)
	case wire.TypeEnd:
		err = g.handleEnd(conn, f)
	case wire.TypeKill:
		err = g.handleKill(conn, f)
	case wire.TypeTransfer:
		var r wire.Transfer
		if err = f.Decode(&r); err == nil {
			err = g.transfer(conn, wire.Files{In: r.In})
		}
	case wire.TypeFiles:
		var r wire.Files
		if err = f.Decode(&r); err == nil {
			err = g.transfer(conn, r)
		}
	case wire.TypeStats:
		err = g.handleStats(conn, f)
	case wire.TypeResize:
		err = g.handleResize(conn, f)
	case wire.TypeReach:
		err = g.handleConnect(conn, f)
	default:
		err = wire.ErrProtocol
	}
	if err != nil {
		fail(conn, err)
	}
}

// fail answers a request with why it can't be done.
func fail(conn *wire.Conn, err error) {
	_ = conn.Send(wire.TypeError, wire.Error{Kind: kindOf(err), Message: err.Error()})
}

// kindOf classifies a failure in init.
func kindOf(err error) fault.Kind {
	var disk errDisk
	switch {
	case errors.As(err, &disk):
		return fault.Storage
	case fault.Is(err, fault.PortUnreachable):
		return fault.PortUnreachable
	case errors.Is(err, errStopping), errors.Is(err, errPaused), errors.Is(err, errTaken), errors.Is(err, errReleased), errors.Is(err, errEnded),
		errors.Is(err, errUnclaimed), errors.Is(err, errClaimed):
		return fault.InvalidState
	case errors.Is(err, errUnknown):
		return fault.ExecNotFound
	case errors.Is(err, errTerminals):
		return fault.ResourceExhausted
	case errors.Is(err, errOneID):
		return fault.Unsupported
	case errors.Is(err, errNoUser):
		return fault.InvalidArgument
	}
	// fault.Host may return another kind, such as Storage for ENOSPC. It is not
	// used: here ENOSPC does not come from the disk, but from a cgroup for one.
	if kind, _ := fault.Host(err); kind == fault.ResourceExhausted {
		return kind
	}
	return fault.Engine
}

func (g *guest) handleStart(conn *wire.Conn, f wire.Frame) error {
	var r wire.Start
	if err := f.Decode(&r); err != nil {
		return err
	}
	if len(r.Cmd) == 0 {
		return wire.ErrProtocol
	}
	g.enter() // until the command counts
	e, err := g.start(r, conn, asked)
	g.leave()
	if err != nil {
		return err
	}
	if !g.follow(e, conn) { // who asked for it has gone, and nobody else knows of it
		e.end(api.ReasonCanceled, 0)
		e.discard()
	}
	return nil
}

var errUnknown = errors.New("no such exec")

// find returns the exec with this id, or errUnknown if init no longer remembers
// it.
func (g *guest) find(id string) (*exec, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.execs[id]; e != nil {
		return e, nil
	}
	return nil, errUnknown
}

func (g *guest) handleAttach(conn *wire.Conn, f wire.Frame) error {
	var r wire.Attach
	if err := f.Decode(&r); err != nil {
		return err
	}
	e, err := g.find(r.ID)
	if err != nil {
		return err
	}
	if (e.kind == ofMain) != r.Main {
		return errTaken
	}
	if err := e.attach(conn); err != nil {
		return err
	}
	g.touch()
	g.follow(e, conn)
	return nil
}

// follow passes the exec's descriptors to its reader and serves the reader's
// requests, until the reader releases the exec or disconnects. Then another
// reader may attach. It returns false if the reader had gone before it got the descriptors.
func (g *guest) follow(e *exec, conn *wire.Conn) (handed bool) {
	defer e.detach()
	if handed = e.hand(g, conn); !handed {
		conn.Cut() // what it asked for before it left, such as a release, is still read below
	}
	for {
		f, err := conn.Recv()
		if err != nil {
			return handed
		}
		f.CloseFDs()
		g.told(e, f)
		if e.control(f) != nil {
			return handed
		}
	}
}

// errLeft ends the service of a reader that leaves.
var errLeft = errors.New("the reader has left")

func (e *exec) control(f wire.Frame) error {
	switch f.Type {
	case wire.TypeRelease:
		e.discard()
		return errLeft
	case wire.TypeDetach:
		return errLeft
	case wire.TypeCloseStdin:
		e.closeStdin()
	case wire.TypeSignal:
		var r wire.Signal
		if err := f.Decode(&r); err != nil {
			return err
		}
		e.signal(unix.Signal(r.Signal), false)
	case wire.TypeCancel:
		var r wire.Cancel
		if err := f.Decode(&r); err != nil {
			return err
		}
		e.end(api.ReasonCanceled, milliseconds(r.GraceMS))
	case wire.TypeHangUp:
		var r wire.Cancel
		if err := f.Decode(&r); err != nil {
			return err
		}
		e.hangUp(milliseconds(r.GraceMS))
	default:
		return wire.ErrProtocol
	}
	return nil
}

// signal sends a signal to the command's own process, or to the process group that
// it was started as the leader of. It does nothing and returns false once that process
// has ended, as its PID may be another process's by then.
func (e *exec) signal(sig unix.Signal, group bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.runs() {
		return false
	}
	pid := e.pid
	if group {
		pid = -pid
	}
	_ = unix.Kill(pid, sig)
	return true
}

// handleResize sets the size of an exec's terminal, and answers once it has it.
func (g *guest) handleResize(conn *wire.Conn, f wire.Frame) error {
	var r wire.Resize
	if err := f.Decode(&r); err != nil {
		return err
	}
	e, err := g.find(r.ID)
	if err != nil {
		return err
	}
	e.resize(r)
	return conn.Send(wire.TypeReady, nil)
}

// resize sets the size of the exec's terminal, if it has one.
func (e *exec) resize(r wire.Resize) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.files.tty && e.files.out >= 0 {
		_ = unix.IoctlSetWinsize(e.files.out, unix.TIOCSWINSZ, winsize(r.Cols, r.Rows))
	}
}

func milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), 24*3600*1000)) * time.Millisecond
}
