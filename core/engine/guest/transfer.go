package guest

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/engine/transfer"
	"sandbox/core/engine/wire"
	"sandbox/core/ids"
)

// transferGrace is what a child whose host has gone gets to clean up.
const transferGrace = 2 * time.Second

// handleTransfer starts a child that moves a file, and ends it when its host
// has gone. Init itself touches no file of the box: it may do more than the
// box's root, and could be led by a link to where that one can't go.
func (g *guest) handleTransfer(conn *wire.Conn, f wire.Frame) error {
	var r wire.Transfer
	if err := f.Decode(&r); err != nil {
		return err
	}
	e, ours, err := g.startTransfer(r.In)
	if err != nil {
		return err
	}
	err = conn.Send(wire.TypeMoving, nil, ours...)
	closeAll(ours)
	if err == nil {
		_, err = conn.Recv() // nothing comes but the end
	}
	e.end(api.ReasonCanceled, transferGrace)
	return err
}

// startTransfer returns the child and the ends that its host is to have.
func (g *guest) startTransfer(in bool) (*exec, []int, error) {
	child, ours, err := g.transferFiles(in)
	if err != nil {
		return nil, nil, fmt.Errorf("make the pipes of a transfer: %w", err)
	}
	defer child.close()
	root, err := openDir("/")
	if err != nil {
		closeAll(ours)
		return nil, nil, err
	}
	// It leads to the program as the shim sealed it, not to a file of the box.
	plan := plan{path: "/proc/self/exe", dir: root, env: []string{"GOMAXPROCS=1"}, user: user{name: "root", home: "/"}}
	defer plan.close()
	e := &exec{id: ids.Exec.New(), created: time.Now(), done: make(chan struct{}), files: files{out: -1, err: -1, in: -1}}
	if g.isStopping() {
		closeAll(ours)
		return nil, nil, errStopping
	}
	if why := g.fork(e, plan, []string{"sandbox-init", transfer.Argument}, child); why != nil {
		closeAll(ours)
		return nil, nil, errors.New(why.message)
	}
	return e, ours, nil
}

func (g *guest) isStopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopping
}

// transferFiles makes the pipe for the bytes and the socket to talk on, which
// is the child's stderr: what Go's runtime may say there is no answer, and is
// taken for none. The host's ends don't block.
func (g *guest) transferFiles(in bool) (child childFiles, ours []int, err error) {
	var data [2]int
	if err := unix.Pipe2(data[:], unix.O_CLOEXEC); err != nil {
		return child, nil, err
	}
	talk, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		closeAll(data[:])
		return child, nil, err
	}
	null := int(g.null.Fd())
	child = childFiles{in: null, out: data[1], err: talk[1], own: []int{data[1], talk[1]}}
	ours = []int{data[0], talk[0]}
	if in {
		child = childFiles{in: data[0], out: null, err: talk[1], own: []int{data[0], talk[1]}}
		ours = []int{data[1], talk[0]}
	}
	return child, ours, errors.Join(unix.SetNonblock(ours[0], true), unix.SetNonblock(ours[1], true))
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
