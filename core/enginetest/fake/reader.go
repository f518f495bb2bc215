package fake

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// reader is one reader of a command. It has copies of the descriptors.
type reader struct {
	*control
	process *core.Process
	exit    *os.File
}

// attach hands the command to a reader. It fails when the command has a reader
// or was released.
func (c *control) attach() (*core.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read || c.out == nil {
		return nil, fault.New(fault.InvalidState, "the output of exec %s is read by another, or was released", c.record.ID)
	}
	r := &reader{control: c, exit: dup(c.exit)}
	r.process = &core.Process{Record: c.record, Stdin: dup(c.in), Stdout: dup(c.out), Stderr: dup(c.err), Streams: c.counts, Control: r}
	if c.record.TTY && c.group != 0 {
		r.process.Stdin = r.process.Stdout
	}
	if !c.keepIn {
		c.closeStdin()
	}
	c.read = true
	return r.process, nil
}

// dup returns a copy of a descriptor, or nil for nil.
func dup(f *os.File) *os.File {
	if f == nil {
		return nil
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		err = syscall.SetNonblock(fd, true) // as Process promises; Fd has undone it
	}
	if err != nil {
		panic(err) // only tests run this code
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name())
}

func (r *reader) ExitFD() int { return int(r.exit.Fd()) }

func (r *reader) Exit() (api.ExitStatus, error) {
	<-r.done
	return r.status, nil
}

func (r *reader) Signal(_ context.Context, sig int) error { return r.kill(sig) }

// kill sends a signal to the command's own process.
func (c *control) kill(sig int) error { return c.signalTo(c.group, sig) }

// interrupt sends SIGINT to the command's process group.
func (c *control) interrupt() error { return c.signalTo(-c.group, int(syscall.SIGINT)) }

func (c *control) signalTo(pid, sig int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fault.New(fault.InvalidState, "the command has ended")
	}
	return fault.Wrap(fault.InvalidArgument, syscall.Kill(pid, syscall.Signal(sig)), "send signal %d", sig)
}

func (r *reader) Cancel(_ context.Context, grace time.Duration) error {
	if !r.end(api.ExecCanceled, api.ReasonCanceled, grace) {
		return fault.New(fault.InvalidState, "the command has ended")
	}
	return nil
}

func (r *reader) HangUp(_ context.Context, grace time.Duration) error {
	if r.group != 0 {
		_ = syscall.Kill(-r.group, syscall.SIGHUP)
		time.AfterFunc(grace, func() { _ = syscall.Kill(-r.group, syscall.SIGKILL) })
	}
	return nil
}

func (r *reader) CloseStdin(context.Context) error {
	if in := r.process.Stdin; in != nil && in != r.process.Stdout {
		_ = in.Close() // the user of the Process may have closed it already
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeStdin()
	return nil
}

// closeStdin closes the engine's own end of stdin. c.mu is held, or no other
// goroutine has c.
func (c *control) closeStdin() {
	if c.in != nil {
		_ = c.in.Close()
		c.in = nil
	}
}

func (r *reader) Resize(_ context.Context, cols, rows int) error {
	size := unix.Winsize{Col: uint16(cols), Row: uint16(rows)}
	err := core.WithFD(r.process.Stdout, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
	return fault.Wrap(fault.InvalidState, err, "the command has no terminal")
}

func (r *reader) Detach() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range []*os.File{r.process.Stdin, r.process.Stdout, r.process.Stderr, r.exit} {
		if f != nil {
			_ = f.Close() // Stdin may have been closed by its user, or be Stdout
		}
	}
	r.read = false
	return nil
}

func (r *reader) Release() error {
	err := r.Detach()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close()
	return err
}

// close closes stdin and drops the output. c.mu is held, or no other goroutine
// has c.
func (c *control) close() {
	c.closeStdin()
	for _, f := range []**os.File{&c.out, &c.err} {
		if *f != nil {
			_ = (*f).Close()
			*f = nil
		}
	}
}

// drop closes what is left of a command whose box has been stopped or removed.
func (c *control) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	_ = c.exit.Close()
}

// now returns the current record.
func (c *control) now() api.Exec {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		return c.record
	}
	return c.record.Ended(c.status)
}
