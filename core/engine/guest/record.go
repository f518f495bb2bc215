package guest

import (
	"errors"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// keptText is how many bytes of an ended exec's command and environment are
// kept, so that those of MaxExecs fit the least of boxes; shownEnv is the
// largest environment that fits a frame, however JSON lengthens it.
const (
	keptText = 4 << 10
	shownEnv = 512 << 10
)

// record returns what is known of the exec. e.mu is held.
func (e *exec) record(g *guest) wire.Exec {
	r := wire.Exec{
		ID: e.id, PID: e.pid, Cmd: e.asked.Cmd, TTY: e.asked.TTY, Stdin: e.asked.Stdin, TimeoutMS: e.asked.TimeoutMS,
		WorkingDir: g.workingDir(e.asked), User: g.userOf(e.asked), CreatedAt: e.created.UTC(), End: e.status,
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

// listed returns the exec as a list has it: with no more text than all can have.
func (e *exec) listed(g *guest) wire.Exec {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.record(g)
	r.Env, r.Cmd = nil, cut(r.Cmd)
	return r
}

// forgetText drops what is too long to be kept, once nobody reads an exec that
// has ended. e.mu is held.
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
		arg = string([]byte(arg)[:min(len(arg), left)]) // not a part of the long one
		kept, left = append(kept, arg), left-len(arg)
		if left == 0 || len(kept) == keptText {
			break
		}
	}
	return kept
}

// handleExecs sends the last execs, newest first.
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

// handleFind answers with an exec; an Await also once it has ended.
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
	e, err := g.find(r.ID)
	if err != nil {
		return err
	}
	if !e.end(api.ReasonCanceled, milliseconds(r.GraceMS)) {
		return errEnded
	}
	return g.tellEnd(e, conn, false)
}

func (g *guest) tell(e *exec, conn *wire.Conn) error {
	e.mu.Lock()
	r := e.record(g)
	e.mu.Unlock()
	return conn.Send(wire.TypeExec, r)
}

// tellEnd tells of the exec when it has ended, and before too if asked to,
// unless the other side hangs up. A box that stops waits for it.
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
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			f, err := conn.Recv() // ends with the connection
			if err != nil {
				return
			}
			f.CloseFDs()
		}
	}()
	select {
	case <-e.done:
		return g.tell(e, conn)
	case <-gone:
		return nil
	}
}
