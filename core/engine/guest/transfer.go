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

// transferGrace is how long a child may clean up after its host process has
// gone.
const transferGrace = 2 * time.Second

// transfer starts a child that moves a file or works on files, and ends the child
// when the host process disconnects. Init itself does not touch the files: it has
// more rights than any user of the box, and a link could lead it to a file that
// the user can't reach.
func (g *guest) transfer(conn *wire.Conn, r wire.Files) error {
	who := user{name: "root", home: "/"}
	if r.User != "" {
		var err error
		if who, err = lookUpUser(r.User); err != nil {
			return err
		}
	}
	e, ours, err := g.startTransfer(r.In, who)
	if err != nil {
		return err
	}
	err = conn.Send(wire.TypeMoving, nil, ours...)
	closeAll(ours)
	if err == nil {
		_, err = conn.Recv() // the host sends nothing more, so this waits until it disconnects
	}
	e.end(api.ReasonCanceled, transferGrace)
	return err
}

// startTransfer starts the child and returns it, with the ends of its
// descriptors that the host process gets.
func (g *guest) startTransfer(in bool, who user) (*exec, []int, error) {
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
	// /proc/self/exe leads to the program that the shim sealed in memory, not to
	// a file of the box.
	plan := plan{path: "/proc/self/exe", dir: root, env: []string{"GOMAXPROCS=1"}, user: who}
	defer plan.close()
	e := &exec{id: ids.Exec.New(), kind: ofFiles, created: time.Now(), clocks: &g.clocks, done: make(chan struct{}), files: files{out: -1, err: -1, in: -1}}
	why, err := g.fork(e, plan, []string{"sandbox-init", transfer.Argument}, child)
	if err == nil && why != nil {
		err = errors.New(why.message)
	}
	if err != nil {
		closeAll(ours)
		return nil, nil, err
	}
	return e, ours, nil
}

// transferFiles makes the pipe for the bytes and the socket for the messages.
// The socket is the child's stderr. If Go's runtime writes to it, that is no
// valid message, and the host takes it for a failure. The host's ends don't
// block.
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
