// Package process identifies processes so that a new process with a reused PID
// is not mistaken for the old one, and waits for the end of any process.
package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Identity identifies a process by its PID and its start time, in clock ticks
// since boot.
type Identity struct {
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
}

// Of returns the identity of a running process. The error is os.ErrProcessDone
// if the kernel said that there is no such process. After any other error, such
// as EMFILE, it is unknown whether the process runs.
func Of(pid int) (Identity, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return Identity{}, done(pid)
	}
	if err != nil {
		return Identity{}, err
	}
	// The start time is field 22. The fields are counted from the end of the
	// name, which may hold any character but ends at the last parenthesis.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return Identity{}, fmt.Errorf("process %d: unreadable stat", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return Identity{}, done(pid)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return Identity{PID: pid, Start: start}, err
}

// Ended tells whether the process has certainly ended: no process has its PID,
// or the one that has it was started at another time. If that can't be found
// out, as when this process is out of descriptors, Ended returns false: nobody
// may act on the end of a process that is only guessed.
func (i Identity) Ended() bool {
	if i.PID == 0 {
		return true
	}
	now, err := Of(i.PID)
	if err != nil {
		return errors.Is(err, os.ErrProcessDone)
	}
	return now != i
}

// EndsWithin waits at most d for the end of the process. It tells whether the
// process has certainly ended, as Ended does. It waits for d too where it can't watch the
// process, as when this one is out of descriptors: callers try again until it has ended.
func (i Identity) EndsWithin(d time.Duration) bool {
	until := time.Now().Add(d)
	h, err := Open(i)
	if err == nil {
		defer h.Close()
		err = h.f.SetReadDeadline(until)
	}
	switch {
	case err == nil:
		return h.Wait() == nil
	case errors.Is(err, os.ErrProcessDone):
		return true
	}
	time.Sleep(time.Until(until))
	return i.Ended()
}

func done(pid int) error { return fmt.Errorf("process %d: %w", pid, os.ErrProcessDone) }

// Handle refers to one process by a pidfd. Unlike a PID, it can't come to refer
// to another process.
type Handle struct{ f *os.File }

// Open returns a handle of the process. The error is os.ErrProcessDone if the
// process has ended. After any other error it is unknown whether it runs.
func Open(i Identity) (*Handle, error) {
	if i.PID == 0 {
		return nil, done(i.PID)
	}
	h, err := Hold(i.PID)
	if err != nil {
		return nil, err
	}
	now, err := Of(i.PID)
	if err == nil && now != i { // the PID is another process's by now
		err = done(i.PID)
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

// Hold returns a handle of the process that has this PID now, also of one whose
// main thread has ended while others still run. Its errors are those of [Open].
func Hold(pid int) (*Handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, done(pid)
	}
	if err != nil {
		return nil, fmt.Errorf("open a handle of process %d: %w", pid, err)
	}
	return &Handle{os.NewFile(uintptr(fd), "pidfd")}, nil
}

// Wait waits until the process has ended with all its threads. It waits in Go's
// poller and blocks no thread. It fails if the handle is closed meanwhile.
func (h *Handle) Wait() error {
	rc, err := h.f.SyscallConn()
	if err != nil {
		return err
	}
	return rc.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return err == nil && n > 0
	})
}

// JoinNetwork moves the calling thread, which the caller has locked, into the network
// namespace of the process. Only privileged programs may. The error is os.ErrClosed
// after Close, and ESRCH if the process has ended.
func (h *Handle) JoinNetwork() error {
	if err := h.control(func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) }); err != nil {
		return fmt.Errorf("join the network of a process: %w", err)
	}
	return nil
}

// Kill ends the process with SIGKILL. The error is os.ErrClosed after Close.
func (h *Handle) Kill() error {
	return h.control(func(fd int) error { return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
}

// control calls f with the descriptor, whose number is no other file's before f has
// returned. The error is os.ErrClosed after Close.
func (h *Handle) control(f func(fd int) error) error {
	rc, err := h.f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if rc.Control(func(fd uintptr) { failed = f(int(fd)) }) != nil { // it fails for nothing else
		return os.ErrClosed
	}
	return failed
}

// Close closes the handle; the process goes on.
func (h *Handle) Close() error { return h.f.Close() }
