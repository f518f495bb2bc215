package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/sockets"
	"sandbox/logs/embedded/handover"
)

// An engine that dies is started again after a pause. The pause is short at first,
// and doubles while the engine dies without having answered.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
)

// mendPause is how long a child is left alone that was started to mend damage.
const mendPause = time.Minute

// keep runs one child after another until ctx ends. It owns the child.
func (e *Engine) keep(ctx context.Context) {
	defer close(e.stopped)
	pause := firstPause
	for {
		answered, err := e.run(ctx)
		if ctx.Err() != nil {
			e.set(fault.New(fault.Unavailable, "the log engine was shut down"))
			return
		}
		e.set(fault.Wrap(fault.Unavailable, err, "the log engine is down"))
		if answered {
			pause = firstPause
		}
		e.options.Logger.Error("the log engine is down", "err", err, "again_in", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// socketName is the name of the engine's socket in its directory.
const socketName = "socket"

// run starts a child and waits until it ends. It always returns the reason for
// that. answered reports whether the child ever served. The child ends no later
// than ctx does.
func (e *Engine) run(ctx context.Context) (answered bool, err error) {
	cmd, ready, lifeline, err := e.start(ctx)
	if err != nil {
		return false, err
	}
	defer ready.Close()
	defer lifeline.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	said := make(chan string, 1)
	go func() {
		b, _ := bufio.NewReader(io.LimitReader(ready, 4096)).ReadString('\n')
		said <- b
	}()
	reason := ""
	for {
		select {
		case <-e.damaged:
			if time.Since(e.mended) > mendPause {
				e.mended = time.Now()
				e.options.Logger.Error("a file of the log engine is damaged: it is started again, to set that aside")
				_ = cmd.Process.Kill()
			}
		case reason = <-said:
			if answered = reason == handover.Ready; answered {
				if err := e.copyDefinitions(); err != nil {
					e.options.Logger.Warn("the definition of a table has no copy", "error", err)
				}
				e.set(nil)
				e.options.Logger.Info("the log engine answers", "pid", cmd.Process.Pid)
			}
			said = nil
		case err := <-ended:
			e.options.Logger.Error("the log engine died", "err", err, "last_words", string(cmd.Stderr.(*lastWords).text))
			return answered, because(reason, said, err)
		case <-ctx.Done():
			_ = cmd.Process.Kill() // it needs no time to end: acknowledged rows are on disk
			return answered, <-ended
		}
	}
}

// because returns the reason for a child's end: what the child reported, if it
// reported anything.
func because(reason string, said <-chan string, err error) error {
	if said != nil {
		reason = <-said // this does not wait for long: the child's end of the pipe is closed
	}
	if reason != "" && reason != handover.Ready {
		return errors.New(reason)
	}
	if err == nil {
		err = errors.New("the engine ended by itself")
	}
	return err
}

// start starts the child. The child inherits a listening socket and the other
// ends of two pipes. It writes to ready when it answers, and it exits when
// lifeline is closed, which also happens if this process is killed. It also
// inherits the lock of the directory, which is released when it exits, because
// the child of an earlier process may still be ending.
func (e *Engine) start(ctx context.Context) (cmd *exec.Cmd, ready, lifeline *os.File, err error) {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	lock, err := filelock.Exclusive(ctx, filepath.Join(e.options.Dir, "lock"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("lock the engine's directory: %w", err)
	}
	defer lock.File.Close() // the child keeps the lock
	if err := e.mendDefinitions(); err != nil {
		return nil, nil, nil, fmt.Errorf("mend the definition of a table: %w", err)
	}
	// The socket is made anew, so that clients that wait on the socket of a
	// dead engine get an error.
	socket, err := sockets.Replace(e.dir, socketName)
	if err != nil {
		return nil, nil, nil, err
	}
	theirs = append(theirs, os.NewFile(uintptr(socket), socketName))
	ready, tell, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	life, lifeline, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, errors.Join(fmt.Errorf("make a pipe: %w", err), ready.Close(), tell.Close())
	}
	theirs = append(theirs, tell, life)
	if cmd, err = e.spawn(append(theirs, lock.File)); err != nil {
		return nil, nil, nil, errors.Join(err, ready.Close(), lifeline.Close())
	}
	return cmd, ready, lifeline, nil
}

func (e *Engine) spawn(files []*os.File) (*exec.Cmd, error) {
	data, err := filepath.Abs(filepath.Join(e.options.Dir, "data"))
	if err != nil {
		return nil, err
	}
	settings := handover.Settings{Data: data, Library: e.lib, TTL: e.options.TTL, Memory: e.options.Memory}
	cmd := exec.Command(e.child, settings.Args()...)
	cmd.Env = []string{} // the child does not inherit the daemon's environment
	cmd.Dir = data
	cmd.ExtraFiles = files
	cmd.Stderr = &lastWords{}
	// The child gets a session of its own, because SYSTEM SHUTDOWN signals its
	// whole process group. It also gets an empty network, and can signal no
	// process but itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 { // who needs a user namespace to make the others
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", e.child, err)
	}
	return cmd, nil
}

// lastWords keeps the end of what a child prints. Most of what the engine
// prints means nothing, but when it dies the last lines may say why.
type lastWords struct{ text []byte }

// maxWords bounds how many bytes are kept.
const maxWords = 4096

// Write keeps p, or the end of it.
func (l *lastWords) Write(p []byte) (int, error) {
	l.text = append(l.text, p...)
	l.text = l.text[max(0, len(l.text)-maxWords):]
	return len(p), nil
}
