package fake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// control is a command: a process group of its own. group is 0 for one that
// could not be started.
type control struct {
	group int
	cmd   *exec.Cmd
	files []*os.File // of the caller, closed by Release
	exit  *os.File   // reads EOF once status is set
	done  chan struct{}

	mu     sync.Mutex
	status core.ExecStatus // its State and Reason are set early by what ends the command
	signal syscall.Signal  // the last one sent to end it
	ended  bool
}

var execs atomic.Int64

// start runs o, or makes an exec that has ended because it could not be run.
func start(b *box, o options.Exec) (*core.Process, *control, error) {
	exitR, exitW, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c := &control{exit: exitR, done: make(chan struct{}), files: []*os.File{exitR}}
	p := &core.Process{ID: fmt.Sprintf("exec_%020d", execs.Add(1)), Control: c}
	cmd, failure := command(b, o)
	if failure == nil {
		failure = c.run(cmd, o, p)
	}
	if failure == nil {
		go c.wait(exitW)
		if o.Timeout > 0 {
			time.AfterFunc(o.Timeout, func() { c.end(core.ExecTimedOut, core.ReasonTimedOut, 2*time.Second) })
		}
		return p, c, nil
	}
	c.status, c.ended = why(failure), true
	close(c.done)
	_ = exitW.Close()
	return p, c, c.complain(p, failure.Error())
}

func (c *control) run(cmd *exec.Cmd, o options.Exec, p *core.Process) error {
	var theirs []*os.File
	var err error
	if o.TTY {
		err = c.terminal(cmd, o, p)
	} else {
		theirs, err = c.pipes(cmd, o, p)
		if err == nil {
			err = cmd.Start()
		}
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		return err
	}
	c.cmd, c.group, p.PID = cmd, cmd.Process.Pid, cmd.Process.Pid
	return nil
}

func (c *control) terminal(cmd *exec.Cmd, o options.Exec, p *core.Process) error {
	size := &pty.Winsize{Cols: 80, Rows: 24}
	if o.Cols > 0 && o.Rows > 0 {
		size = &pty.Winsize{Cols: uint16(o.Cols), Rows: uint16(o.Rows)}
	}
	f, err := pty.StartWithSize(cmd, size)
	if err != nil {
		return err
	}
	p.Stdin, p.Stdout = f, f
	c.files = append(c.files, f)
	return nil
}

// pipes sets the command's ends and gives them: they are closed after its start.
func (c *control) pipes(cmd *exec.Cmd, o options.Exec, p *core.Process) (theirs []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	var stdin, stdout, stderr *os.File
	if o.Stdin {
		stdin, p.Stdin = pipe()
		cmd.Stdin = stdin
		theirs, c.files = append(theirs, stdin), append(c.files, p.Stdin)
	}
	p.Stdout, stdout = pipe()
	p.Stderr, stderr = pipe()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	c.files = append(c.files, p.Stdout, p.Stderr)
	return append(theirs, stdout, stderr), err
}

// complain puts text where the command's errors go.
func (c *control) complain(p *core.Process, text string) error {
	c.closeFiles(1)
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return err
	}
	p.Stdin, p.Stdout, p.Stderr = nil, outR, errR
	c.files = append(c.files, outR, errR)
	_, err = errW.WriteString(text + "\n")
	return errors.Join(err, outW.Close(), errW.Close())
}

// why gives the status of a command that could not be started.
func why(failure error) core.ExecStatus {
	s := core.ExecStatus{State: core.ExecFailed, Reason: core.ReasonNotExecutable, ExitCode: 126, Message: failure.Error()}
	if errors.Is(failure, errNotFound) {
		s.Reason, s.ExitCode = core.ReasonNotFound, 127
	}
	return s
}

var errNotFound = errors.New("command not found")

// wait reaps the command.
func (c *control) wait(exit *os.File) {
	_ = c.cmd.Wait()
	ws := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	c.mu.Lock()
	c.ended = true
	if c.status.Reason == "" {
		c.status = ownEnd(ws)
	} else {
		c.status.ExitCode, c.status.Signal = 128+int(c.signal), int(c.signal)
	}
	c.mu.Unlock()
	close(c.done)
	_ = exit.Close()
}

func ownEnd(ws syscall.WaitStatus) core.ExecStatus {
	switch {
	case ws.Signaled():
		return core.ExecStatus{State: core.ExecFailed, Reason: core.ReasonSignaled, ExitCode: 128 + int(ws.Signal()), Signal: int(ws.Signal())}
	case ws.ExitStatus() == 0:
		return core.ExecStatus{State: core.ExecSucceeded, Reason: core.ReasonExited}
	}
	return core.ExecStatus{State: core.ExecFailed, Reason: core.ReasonExited, ExitCode: ws.ExitStatus()}
}

// end ends the process group: SIGTERM, SIGKILL after grace. It gives false if
// the command had ended.
func (c *control) end(state core.ExecState, reason string, grace time.Duration) bool {
	if !c.send(syscall.SIGTERM, state, reason) {
		return false
	}
	time.AfterFunc(grace, func() {
		c.send(syscall.SIGKILL, state, reason)
		_ = syscall.Kill(-c.group, syscall.SIGKILL) // what its end left
	})
	return true
}

func (c *control) send(sig syscall.Signal, state core.ExecState, reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.status.State, c.status.Reason, c.signal = state, reason, sig
	_ = syscall.Kill(-c.group, sig)
	return true
}

// endAll ends the execs of a box that stops, with all they left.
func endAll(execs []*control, grace time.Duration) {
	late := time.After(grace)
	for _, c := range execs {
		c.send(syscall.SIGTERM, core.ExecFailed, core.ReasonBoxStopped)
	}
	for _, c := range execs {
		select {
		case <-c.done:
		case <-late:
			late = time.After(0)
		}
		c.send(syscall.SIGKILL, core.ExecFailed, core.ReasonBoxStopped)
		_ = syscall.Kill(-c.group, syscall.SIGKILL)
		<-c.done
	}
}

func (c *control) ExitFD() int { return int(c.exit.Fd()) }

func (c *control) Exit() (core.ExecStatus, error) {
	<-c.done
	return c.status, nil
}

func (c *control) Signal(_ context.Context, sig int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fault.New(fault.InvalidState, "the command has ended")
	}
	return fault.Wrap(fault.InvalidArgument, syscall.Kill(c.group, syscall.Signal(sig)), "send signal %d", sig)
}

func (c *control) Cancel(_ context.Context, grace time.Duration) error {
	if !c.end(core.ExecCanceled, core.ReasonCanceled, grace) {
		return fault.New(fault.InvalidState, "the command has ended")
	}
	return nil
}

func (c *control) Resize(_ context.Context, cols, rows int) error {
	terminal := c.files[len(c.files)-1]
	err := pty.Setsize(terminal, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
	return fault.Wrap(fault.InvalidState, err, "the command has no terminal")
}

func (c *control) Release() error {
	c.closeFiles(0)
	return nil
}

func (c *control) closeFiles(from int) {
	for _, f := range c.files[from:] {
		if f != nil {
			_ = f.Close()
		}
	}
	c.files = c.files[:from]
}

// lookup finds a command as execvp does, in the command's own PATH.
func lookup(name, dir, path string) (string, error) {
	if filepath.Base(name) != name {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	for _, folder := range filepath.SplitList(path) {
		if file := filepath.Join(folder, name); executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, errNotFound)
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", file, errNotFound)
	case err != nil:
		return err
	case info.IsDir(), info.Mode()&0o111 == 0:
		return fmt.Errorf("%s: not executable", file)
	}
	return nil
}
