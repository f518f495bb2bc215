package layer

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"

	"sandbox/core/fault"
)

// Copy is a copy of a tree for which a child process stands ready, so that the tree has
// to stand still for no longer than the copying takes. One goroutine uses it, and calls
// Close.
type Copy struct {
	ctx    context.Context
	dir    string
	cmd    *exec.Cmd
	begin  *os.File // the write end of the child's standard input
	answer *os.File
	tell   *os.File
	done   bool
}

// NewCopy starts a child process that will copy the open directory from, which it only
// reads, to the new directory dir. argv is the command line of a program whose main calls
// [CopyChild]. When ctx ends, the child is killed. Errors: Storage, ResourceExhausted,
// Engine.
func NewCopy(ctx context.Context, argv []string, from *os.File, dir string) (*Copy, error) {
	c := &Copy{ctx: ctx, dir: dir}
	if err := c.start(argv, from); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Copy) start(argv []string, from *os.File) (err error) {
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return fault.Disk(err, "make a layer's directory")
	}
	root, err := os.Open(c.dir)
	if err != nil {
		return fault.Disk(err, "open a layer's directory")
	}
	defer root.Close()
	wait, begin, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	defer wait.Close()
	c.begin = begin
	if c.answer, c.tell, err = os.Pipe(); err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "make a pipe")
	}
	cmd := command(c.ctx, argv, root, c.tell, from)
	cmd.Stdin = wait
	if err := cmd.Start(); err != nil {
		return fault.Wrap(fault.Engine, err, "make a layer")
	}
	c.cmd = cmd
	return nil
}

// Run copies. Nothing may change in the tree meanwhile. Errors: Storage, Engine, and what
// ended ctx; dir is removed then.
func (c *Copy) Run() error {
	_, err := c.begin.Write([]byte{1})
	if err != nil {
		err = fault.Wrap(fault.Engine, err, "the process that makes a layer has ended")
	}
	failed := outcome(c.ctx, c.cmd.Wait(), c.answer, c.tell)
	c.cmd = nil
	if failed != nil { // it says more than that the pipe broke
		err = failed
	}
	c.done = err == nil
	return err
}

// Close ends the child if it was not used. It removes dir unless Run has succeeded.
func (c *Copy) Close() {
	for _, f := range []*os.File{c.begin, c.answer, c.tell} {
		_ = f.Close() // fails for nil, and for what outcome has closed
	}
	if c.cmd != nil {
		_ = c.cmd.Wait() // it ends since begin is closed
	}
	if !c.done {
		_ = os.RemoveAll(c.dir)
	}
}

// CopyChild is the body of the process that [NewCopy] starts. It locks itself into the new
// directory, gives up all rights except those over files, waits for the sign to begin,
// copies, and returns the exit status. It must be the only thing that its process does.
func CopyChild() int { return exitOf(copyChild()) }

func copyChild() error {
	runtime.LockOSThread() // with cgo only this thread gives up its rights
	if err := confine(dirFD); err != nil {
		return fault.Wrap(fault.Engine, err, "lock in the process that makes a layer")
	}
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		if errors.Is(err, io.EOF) { // it is not needed
			return nil
		}
		return fault.Wrap(fault.Engine, err, "wait for the sign to begin")
	}
	return copyTree(sourceFD, dirFD)
}
