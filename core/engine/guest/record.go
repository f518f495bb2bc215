package guest

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// keptText is how many bytes of an ended exec's command and environment are
// kept, so that MaxExecs of them fit into the memory of the smallest box.
// shownEnv is the size of the largest environment that fits a frame, however
// much JSON lengthens it.
const (
	keptText = 4 << 10
	shownEnv = 512 << 10
)

// record returns what is known of the exec. e.mu is held.
func (e *exec) record(g *guest) wire.Exec {
	r := wire.Exec{
		ID: e.id, PID: e.pid, Cmd: e.asked.Cmd, TTY: e.asked.TTY, Stdin: e.asked.Stdin, TimeoutMS: e.asked.TimeoutMS,
		WorkingDir: g.workingDir(e.asked), User: g.userOf(e.asked), CreatedAt: e.created.UTC(), End: e.status,
		Main: e.kind == ofMain,
	}
	if r.User == "0" {
		r.User = "root"
	}
	if e.asked.Env == nil { // not kept
		return r
	}
	r.Env = e.asked.Env
	if e.who.name != "" {
		r.Env = g.environment(e.asked, e.who)
	}
	if textSize(nil, r.Env) > shownEnv {
		r.Env = nil
	}
	return r
}

// listed returns the exec as it appears in a list: without its environment, and
// with its command cut, so that the texts of all execs stay small.
func (e *exec) listed(g *guest) wire.Exec {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.record(g)
	r.Env, r.Cmd = nil, cut(r.Cmd)
	return r
}

// forgetText drops the environment and cuts the command if they are too long to
// keep, once the exec has ended and has no reader. e.mu is held.
func (e *exec) forgetText() {
	if e.status != nil && e.reader == nil && textSize(e.asked.Cmd, e.asked.Env) > keptText {
		e.asked.Cmd, e.asked.Env = cut(e.asked.Cmd), nil
	}
}

func textSize(cmd []string, env map[string]string) int {
	n := 0
	for _, arg := range cmd {
		n += len(arg)
	}
	for name, value := range env {
		n += len(name) + len(value)
	}
	return n
}

// cut returns the first keptText bytes of a command.
func cut(cmd []string) []string {
	if textSize(cmd, nil) <= keptText {
		return cmd
	}
	var kept []string
	left := keptText
	for _, arg := range cmd {
		arg = string([]byte(arg)[:min(len(arg), left)]) // a copy: a slice would keep the whole argument in memory
		kept, left = append(kept, arg), left-len(arg)
		if left == 0 || len(kept) == keptText {
			break
		}
	}
	return kept
}

// handleExecs answers with the last execs, newest first.
func (g *guest) handleExecs(conn *wire.Conn) error {
	g.mu.Lock()
	order := append([]*exec(nil), g.order[max(0, len(g.order)-wire.MaxExecs):]...)
	g.mu.Unlock()
	for i := len(order) - 1; i >= 0; i-- {
		if err := conn.Send(wire.TypeExec, order[i].listed(g)); err != nil {
			return err
		}
	}
	return conn.Send(wire.TypeListed, nil)
}

// handleFind answers with an exec. It answers an Await a second time, once the
// exec has ended.
func (g *guest) handleFind(conn *wire.Conn, f wire.Frame) error {
	var r wire.Find
	if err := f.Decode(&r); err != nil {
		return err
	}
	e, err := g.find(r.ID)
	if err != nil {
		return err
	}
	if f.Type == wire.TypeAwait {
		return g.tellEnd(e, conn, true)
	}
	return g.tell(e, conn)
}

var errEnded = errors.New("the exec has ended")

// handleEnd cancels an exec and answers once it has ended.
func (g *guest) handleEnd(conn *wire.Conn, f wire.Frame) error {
	var r wire.End
	if err := f.Decode(&r); err != nil {
		return err
	}
	if err := g.awake(); err != nil {
		return err
	}
	e, err := g.find(r.ID)
	if err != nil {
		return err
	}
	if !e.end(api.ReasonCanceled, milliseconds(r.GraceMS)) {
		return errEnded
	}
	return g.tellEnd(e, conn, false)
}

// handleKill sends a signal to an exec's own process, or to its group, and answers
// with the exec.
func (g *guest) handleKill(conn *wire.Conn, f wire.Frame) error {
	var r wire.Kill
	if err := f.Decode(&r); err != nil {
		return err
	}
	if err := g.awake(); err != nil {
		return err
	}
	e, err := g.find(r.ID)
	if err != nil {
		return err
	}
	if !e.signal(unix.Signal(r.Signal), r.Group) {
		return errEnded
	}
	return g.tell(e, conn)
}

func (g *guest) tell(e *exec, conn *wire.Conn) error {
	e.mu.Lock()
	r := e.record(g)
	e.mu.Unlock()
	return conn.Send(wire.TypeExec, r)
}

// tellEnd sends the exec once it has ended, unless the other side hangs up
// first. If before is set, it also sends the exec at once. A box that stops
// waits for tellEnd, for a limited time.
func (g *guest) tellEnd(e *exec, conn *wire.Conn, before bool) error {
	g.mu.Lock()
	if g.stopping {
		g.mu.Unlock()
		return errStopping
	}
	g.telling.Add(1)
	g.mu.Unlock()
	defer g.telling.Done()
	if before {
		if err := g.tell(e, conn); err != nil {
			return err
		}
	}
	gone := awaitHangUp(conn)
	select {
	case <-e.done:
		return g.tell(e, conn)
	case <-gone:
		return nil
	}
}
