// Package process names processes so that a number given out again is not
// taken for the old one, and waits for the end of any of them.
package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Identity is a process: its number, and when it was started in clock ticks
// since boot.
type Identity struct {
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"`
}

// Of identifies a running process. The error is os.ErrProcessDone where the
// kernel said that there is none; any other error, such as EMFILE, leaves open
// whether it runs.
func Of(pid int) (Identity, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return Identity{}, done(pid)
	}
	if err != nil {
		return Identity{}, err
	}
	// Field 22, counted behind the name, which may hold anything but ends
	// with the last parenthesis.
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

// Ended tells whether the process has ended for certain: there is none of that
// number, or it was started at another time. Where that can't be found out, as
// in a process that is out of descriptors, the answer is false: what follows
// from an end is done to nobody on a guess.
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

func done(pid int) error { return fmt.Errorf("process %d: %w", pid, os.ErrProcessDone) }

// Handle is a hold on one process (a pidfd): its number can't come to mean
// another one.
type Handle struct{ f *os.File }

// Open takes hold of the process. The error is os.ErrProcessDone when it has
// ended; any other error leaves open whether it runs.
func Open(i Identity) (*Handle, error) {
	if i.PID == 0 {
		return nil, done(i.PID)
	}
	h, err := Hold(i.PID)
	if err != nil {
		return nil, err
	}
	now, err := Of(i.PID)
	if err == nil && now != i { // the number is another's by now
		err = done(i.PID)
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

// Hold takes hold of the process that has this number now, also of one that
// has ended but for some of its threads. Its errors are those of [Open].
func Hold(pid int) (*Handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, done(pid)
	}
	if err != nil {
		return nil, fmt.Errorf("take hold of process %d: %w", pid, err)
	}
	return &Handle{os.NewFile(uintptr(fd), "pidfd")}, nil
}

// Wait waits until the process has ended, with all its threads, in Go's
// poller: it holds no thread.
// It fails when the handle is closed meanwhile.
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

// Kill ends the process.
func (h *Handle) Kill() error {
	return unix.PidfdSendSignal(int(h.f.Fd()), unix.SIGKILL, nil, 0)
}

// Close lets go of the process.
func (h *Handle) Close() error { return h.f.Close() }
