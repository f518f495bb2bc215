package fake

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/ids"
	"sandbox/core/options"
)

// control is a command, which runs in a process group of its own. group is 0
// for a command that could not be started.
type control struct {
	group  int
	cmd    *exec.Cmd
	record api.Exec // when it started
	keepIn bool
	counts *core.Streams

	// These are the engine's own ends of the pipes. Each reader has copies of
	// them.
	in, out, err *os.File
	exit         *os.File // reads EOF once status is set
	done         chan struct{}

	mu     sync.Mutex
	status api.ExitStatus // what ends the command sets its Status and Reason before the end
	signal syscall.Signal // the last one sent to end it
	ended  bool
	read   bool // a reader has copies of the ends
}

// running tells whether the command has not ended.
func (c *control) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended
}

// start runs the command of o. If the command could not be run, it returns an
// exec that has ended.
func start(b *box, o options.Exec) (*control, error) {
	exitR, exitW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &control{exit: exitR, done: make(chan struct{}), keepIn: o.KeepStdin, counts: &core.Streams{}, record: record(b, o)}
	cmd, failure := command(b, o)
	if failure == nil {
		c.record.Env, c.record.WorkingDir = variables(cmd.Env), cmd.Dir
		failure = c.run(cmd, o)
	}
	if failure == nil {
		go c.wait(exitW)
		if o.Timeout > 0 {
			time.AfterFunc(o.Timeout, func() { c.end(api.ExecTimedOut, api.ReasonTimedOut, 2*time.Second) })
		}
		return c, nil
	}
	c.status, c.ended = why(failure), true
	close(c.done)
	_ = exitW.Close()
	return c, c.complain(failure.Error())
}

func record(b *box, o options.Exec) api.Exec {
	r := api.Exec{
		ID: ids.Exec.New(), BoxID: b.record.ID, Status: api.ExecRunning,
		Cmd: o.Cmd, Env: map[string]string{}, WorkingDir: cmp.Or(o.WorkingDir, b.record.Options.WorkingDir, b.image.WorkingDir, "/"),
		User: cmp.Or(o.User, b.record.Options.User, b.image.User, "root"), TTY: o.TTY, CreatedAt: time.Now().UTC(),
	}
	if o.Timeout > 0 {
		ms := o.Timeout.Milliseconds()
		r.TimeoutMS = &ms
	}
	return r
}

func variables(env []string) map[string]string {
	m := map[string]string{}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		m[name] = value
	}
	return m
}

func (c *control) run(cmd *exec.Cmd, o options.Exec) error {
	var theirs []*os.File
	var err error
	if o.TTY {
		err = c.terminal(cmd, o)
	} else {
		theirs, err = c.pipes(cmd, o)
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
	c.cmd, c.group, c.record.PID = cmd, cmd.Process.Pid, &cmd.Process.Pid
	return nil
}

func (c *control) terminal(cmd *exec.Cmd, o options.Exec) error {
	size := &pty.Winsize{Cols: 80, Rows: 24}
	if o.Cols > 0 && o.Rows > 0 {
		size = &pty.Winsize{Cols: uint16(o.Cols), Rows: uint16(o.Rows)}
	}
	var err error
	c.out, err = pty.StartWithSize(cmd, size)
	return err
}

// pipes makes the command's pipes. It returns the command's ends, which the
// caller closes once the command is started.
func (c *control) pipes(cmd *exec.Cmd, o options.Exec) (theirs []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	var stdin, stdout, stderr *os.File
	if o.Stdin {
		stdin, c.in = pipe()
		cmd.Stdin = stdin
		theirs = append(theirs, stdin)
	}
	c.out, stdout = pipe()
	c.err, stderr = pipe()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return append(theirs, stdout, stderr), err
}

// complain makes text the whole stderr of a command that can't be started.
func (c *control) complain(text string) error {
	c.close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return err
	}
	c.out, c.err = outR, errR
	_, err = errW.WriteString(text + "\n")
	return errors.Join(err, outW.Close(), errW.Close())
}

// why returns the status of a command that could not be started.
func why(failure error) api.ExitStatus {
	s := api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonNotExecutable, ExitCode: 126, Message: failure.Error(), FinishedAt: time.Now().UTC()}
	if errors.Is(failure, errNotFound) {
		s.Reason, s.ExitCode = api.ReasonNotFound, 127
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
	c.status.FinishedAt = time.Now().UTC()
	c.mu.Unlock()
	close(c.done)
	_ = exit.Close()
}

func ownEnd(ws syscall.WaitStatus) api.ExitStatus {
	switch {
	case ws.Signaled():
		return api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonSignaled, ExitCode: 128 + int(ws.Signal()), Signal: int(ws.Signal())}
	case ws.ExitStatus() == 0:
		return api.ExitStatus{Status: api.ExecSucceeded, Reason: api.ReasonExited}
	}
	return api.ExitStatus{Status: api.ExecFailed, Reason: api.ReasonExited, ExitCode: ws.ExitStatus()}
}

// end ends the process group: it sends SIGTERM, and SIGKILL after grace. It
// returns false if the command had ended.
func (c *control) end(status api.ExecStatus, reason api.Reason, grace time.Duration) bool {
	if !c.send(syscall.SIGTERM, status, reason) {
		return false
	}
	time.AfterFunc(grace, func() {
		c.send(syscall.SIGKILL, status, reason)
		_ = syscall.Kill(-c.group, syscall.SIGKILL) // processes that have outlived the command
	})
	return true
}

func (c *control) send(sig syscall.Signal, status api.ExecStatus, reason api.Reason) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.status.Status, c.status.Reason, c.signal = status, reason, sig
	_ = syscall.Kill(-c.group, sig)
	return true
}

// endAll ends the execs of a box that stops, and all processes that they left
// behind.
func endAll(execs []*control, grace time.Duration) {
	late := time.After(grace)
	for _, c := range execs {
		c.send(syscall.SIGTERM, api.ExecFailed, api.ReasonBoxStopped)
		if c.group != 0 {
			_ = syscall.Kill(-c.group, syscall.SIGCONT) // the box may be paused
		}
	}
	for _, c := range execs {
		select {
		case <-c.done:
		case <-late:
			late = time.After(0)
		}
		c.send(syscall.SIGKILL, api.ExecFailed, api.ReasonBoxStopped)
		if c.group != 0 {
			_ = syscall.Kill(-c.group, syscall.SIGKILL)
		}
		<-c.done
		c.drop()
	}
}

// lookup finds a command as execvp does, but in the PATH of the command's own
// environment.
func lookup(name, dir, path string) (string, error) {
	if filepath.Base(name) != name {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); executable(file) == nil {
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
