package harness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls counts the system calls of a process, and of all threads and processes that
// it starts after the count began. The kernel counts, so that nothing is slowed down.
// Its owner closes it.
type Calls struct{ counters []int }

// passing are calls whose number depends on how threads happen to be scheduled.
var passing = []int{
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_EPOLL_PWAIT, unix.SYS_SCHED_YIELD, unix.SYS_TGKILL,
	unix.SYS_GETPID, unix.SYS_RT_SIGRETURN, unix.SYS_RESTART_SYSCALL, unix.SYS_MADVISE,
}

// entries is the tracepoint of the kernel's entry into system calls.
const entries = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"

// CountCalls counts the calls of a process from now on.
func CountCalls(pid int) (*Calls, error) {
	text, err := os.ReadFile(entries)
	if err != nil {
		return nil, fmt.Errorf("count system calls: %w", err)
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return nil, err
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return nil, errors.Join(err, fmt.Errorf("count system calls: there is no process %d", pid))
	}
	c := &Calls{}
	for _, thread := range threads {
		if err := c.add(filepath.Base(thread), id); err != nil {
			return nil, errors.Join(fmt.Errorf("count system calls: %w", err), c.Close())
		}
	}
	return c, nil
}

// add counts the calls of one thread.
func (c *Calls) add(thread string, tracepoint uint64) error {
	tid, err := strconv.Atoi(thread)
	if err != nil {
		return err
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: tracepoint, Bits: unix.PerfBitInherit}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	c.counters = append(c.counters, fd)
	var others []string
	for _, call := range passing {
		others = append(others, fmt.Sprintf("id != %d", call))
	}
	filter, err := unix.BytePtrFromString(strings.Join(others, " && "))
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_SET_FILTER, uintptr(unsafe.Pointer(filter))); errno != 0 {
		return errno
	}
	return nil
}

// Sum returns how many calls there were so far.
func (c *Calls) Sum() (n int, err error) {
	for _, fd := range c.counters {
		var buf [8]byte
		if _, err := unix.Read(fd, buf[:]); err != nil {
			return 0, fmt.Errorf("count system calls: %w", err)
		}
		n += int(binary.NativeEndian.Uint64(buf[:]))
	}
	return n, nil
}

// Close ends the count.
func (c *Calls) Close() error {
	var errs []error
	for _, fd := range c.counters {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
