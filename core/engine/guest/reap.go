package guest

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// reap collects every ended process whose parent is init. Init also becomes the
// parent of each process of the box whose own parent has ended.
func (g *guest) reap(children <-chan os.Signal) {
	for range children {
		for g.reapOne() {
		}
	}
}

// reapOne collects one ended process and tells whether there may be another. It
// runs once at a time. Otherwise one call could find that no child is left while
// another has yet to publish the end of the last one.
func (g *guest) reapOne() bool {
	g.reaping.Lock()
	defer g.reaping.Unlock()
	var ws unix.WaitStatus
	pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
	switch {
	case errors.Is(err, unix.EINTR):
		return true
	case errors.Is(err, unix.ECHILD):
		g.noChild()
		return false
	case pid <= 0:
		return false
	}
	g.mu.Lock()
	e := g.children[pid]
	delete(g.children, pid)
	if e != nil && e.kind != ofCheck {
		g.use.last = time.Now()
	}
	g.mu.Unlock()
	if e != nil {
		e.exited(ws, &g.oom)
	}
	g.removeGroups(e)
	return true
}

// removeGroups removes the group of ended, and groups that could not be removed
// before because they still had processes. The last process of a group is always
// a child of init, so it is enough to try again whenever init reaps a process.
func (g *guest) removeGroups(ended *exec) {
	for _, e := range g.takeRemovable(ended) {
		e.groupGone()
	}
}

func (g *guest) takeRemovable(ended *exec) (gone []*exec) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ended != nil {
		g.left = append(g.left, ended)
	}
	busy := g.left[:0]
	for _, e := range g.left {
		if err := e.group.remove(); errors.Is(err, unix.EBUSY) {
			busy = append(busy, e)
		} else {
			gone = append(gone, e)
		}
	}
	clear(g.left[len(busy):])
	g.left = busy
	return gone
}

// noChild tells a stop that waits for it, if there is one, that the box is
// empty.
func (g *guest) noChild() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}
