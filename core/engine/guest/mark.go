package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// marks tell the processes of each exec apart where no cgroup can be made: in a pod, and where the host gives its user none. A
// mark is a soft limit of resident memory, RLIMIT_RSS, which every process inherits from
// the one that forked it, and to which Linux has held nobody since 2.4. A process that
// changes its own limit no longer ends with its exec; it ends with the box.
type marks struct {
	own   unix.Rlimit   // init's own limit
	given atomic.Uint64 // how many marks there were
}

// firstMark is more memory than any machine has, for programs that ask how much they
// may use, as sort does.
const firstMark = 1 << 60

// newMarks returns a tree of marks, which it has tried out.
func newMarks() (*marks, error) {
	m := &marks{}
	if err := unix.Getrlimit(unix.RLIMIT_RSS, &m.own); err != nil {
		return nil, fmt.Errorf("mark commands: %w", err)
	}
	trial := mark{of: m, value: firstMark}
	err := trial.enter(nil)
	self := lookAt(os.Getpid())
	trial.leave()
	if err == nil && self.mark != firstMark {
		err = errors.New("mark commands: /proc/self/stat does not show the limit of resident memory")
	}
	return m, err
}

func (m *marks) make(string) (group, error) {
	return &mark{of: m, value: firstMark + m.given.Add(1)}, nil
}

// mark is the mark of one exec.
type mark struct {
	of    *marks
	value uint64
	seen  int // a process that had the mark when remove looked last
}

// enter marks init, so that what it forks is marked.
func (m *mark) enter(*syscall.SysProcAttr) error {
	if err := unix.Setrlimit(unix.RLIMIT_RSS, &unix.Rlimit{Cur: m.value, Max: m.of.own.Max}); err != nil {
		return fmt.Errorf("mark a command: %w", err)
	}
	return nil
}

func (m *mark) leave() { _ = unix.Setrlimit(unix.RLIMIT_RSS, &m.of.own) }

func (m *mark) signal(sig unix.Signal) error {
	return m.each(func(p process) bool {
		_ = unix.Kill(p.pid, sig)
		return true
	})
}

// kill kills the processes that it finds, until it has found none twice: it may miss one
// whose number is lower than its parent's, which happens when all numbers have been used.
// A process that forks all the time is outrun by a signal to its process group, out of
// which no fork leads. It may leave that by setsid, over and over, and is then met in one
// of the rounds.
func (m *mark) kill() error {
	clear, own := 0, unix.Getpgrp()
	for range killRounds {
		found := false
		err := m.each(func(p process) bool {
			found = true
			_ = unix.Kill(p.pid, unix.SIGKILL)
			if p.group != own && p.group > 1 { // a child of init that has just been forked is in init's
				_ = unix.Kill(-p.group, unix.SIGKILL)
			}
			return true
		})
		if err != nil {
			return err
		}
		if clear++; found {
			clear = 0
		}
		if clear == 2 {
			return nil
		}
	}
	return unix.EAGAIN
}

// remove first looks at the process that it saw last, so that an exec with many children
// that end one by one does not make it look at all processes each time.
func (m *mark) remove() error {
	if p := lookAt(m.seen); p.mark == m.value {
		return unix.EBUSY
	}
	m.seen = 0
	err := m.each(func(p process) bool {
		m.seen = p.pid
		return false
	})
	if m.seen != 0 {
		return unix.EBUSY
	}
	return err
}

// each calls do for each living process with the mark, until it returns false.
func (m *mark) each(do func(process) bool) error {
	proc, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	for _, name := range names {
		pid, notNumber := strconv.Atoi(name)
		if notNumber != nil || pid <= 1 {
			continue
		}
		if p := lookAt(pid); p.mark == m.value && !do(p) {
			return nil
		}
	}
	return err
}

// process is what /proc tells of a process.
type process struct {
	pid, group int
	mark       uint64 // 0 of one that has ended, although its parent may not know yet
}

// These are fields of /proc/PID/stat, counted from the one behind the name.
const (
	statState = 0
	statGroup = 2
	statLimit = 22
)

// lookAt returns the zero process if there is none with this PID.
func lookAt(pid int) process {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}
	}
	defer unix.Close(fd)
	var text [1024]byte
	n, err := unix.Read(fd, text[:])
	if err != nil {
		return process{}
	}
	// The name may have spaces and parentheses in it; nothing behind it has.
	fields := bytes.Fields(text[bytes.LastIndexByte(text[:n], ')')+1 : n])
	if len(fields) <= statLimit || bytes.ContainsAny(fields[statState], "ZX") {
		return process{}
	}
	group, _ := strconv.Atoi(string(fields[statGroup]))
	limit, _ := strconv.ParseUint(string(fields[statLimit]), 10, 64)
	return process{pid: pid, group: group, mark: limit}
}
