package contestants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/bench/harness"
	"sandbox/core"
)

// Shim is a process that this program did not start itself.
type Shim struct {
	pid int
	fd  int // pidfd: names this process even when its number is used again
}

// ShimOf finds the shim of a home by its command line.
func ShimOf(home string) (int, error) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		line, _ := os.ReadFile(file)
		if bytes.HasSuffix(line, []byte("\x00serve\x00"+home+"\x00")) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("no shim of %s runs", home)
}

// parentOf returns the shim: the process that started the box's init.
func parentOf(ctx context.Context, box *core.Box) (Shim, error) {
	rec, err := box.Record(ctx)
	if err != nil {
		return Shim{}, err
	}
	all, err := harness.Processes()
	if err != nil {
		return Shim{}, err
	}
	for _, p := range all {
		if p.PID != rec.PID || p.Parent <= 1 || p.Parent == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(p.Parent, 0)
		return Shim{p.Parent, fd}, err
	}
	return Shim{}, fmt.Errorf("no shim is the parent of process %d, the init of %s", rec.PID, box.ID())
}

// wait waits until the process ends.
func (h Shim) wait(timeout time.Duration) error {
	if h.pid == 0 {
		return nil
	}
	defer unix.Close(h.fd)
	deadline := time.Now().Add(timeout)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, int(time.Until(deadline).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("process %d has not ended after %v", h.pid, timeout)
		default:
			return nil
		}
	}
}

// Family returns the shim and all processes that are in its session or descend
// from it: all shims, and the processes in the boxes.
func (h Shim) Family() ([]int, error) {
	all, err := harness.Processes()
	family := map[int]bool{h.pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !family[p.PID] && (family[p.Parent] || p.Session == h.pid) {
				family[p.PID], grown = true, true
			}
		}
	}
	var pids []int
	for pid := range family {
		pids = append(pids, pid)
	}
	return pids, err
}

// Namespaces counts the namespaces that the shim and everything it has started
// hold: a process may be in one, or have it open as a descriptor or as a mount.
func (h Shim) Namespaces() (int, error) {
	family, err := h.Family()
	if err != nil {
		return 0, err
	}
	held := map[string]bool{}
	for _, pid := range family {
		for _, pattern := range []string{"ns/*", "task/*/ns/*", "fd/*"} {
			names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/%s", pid, pattern)) // only a bad pattern fails
			for _, name := range names {
				if target, err := os.Readlink(name); err == nil && strings.Contains(target, ":[") && !strings.HasPrefix(target, "socket:") && !strings.HasPrefix(target, "pipe:") && !strings.HasPrefix(target, "anon_inode:") {
					held[target] = true
				}
			}
		}
		mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid)) // it may have ended
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, " - nsfs ") {
				held[line] = true
			}
		}
	}
	return len(held), nil
}
