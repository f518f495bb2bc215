package main

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

	"sandbox/core"
)

// process is one line of /proc.
type process struct{ pid, parent, session int }

// processes reads all of /proc. One that ends meanwhile is left out.
func processes() ([]process, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	var all []process
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var p process
		var state string
		var group int
		p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// Behind the name, which is in brackets and may hold anything.
		_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &p.parent, &group, &p.session)
		if err == nil && state != "Z" {
			all = append(all, p)
		}
	}
	return all, err
}

// family returns the shim and all that is in its session or descends from it:
// all shims, and whatever runs in the boxes.
func (h shim) family() ([]int, error) {
	all, err := processes()
	family := map[int]bool{h.pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !family[p.pid] && (family[p.parent] || p.session == h.pid) {
				family[p.pid], grown = true, true
			}
		}
	}
	var pids []int
	for pid := range family {
		pids = append(pids, pid)
	}
	return pids, err
}

// pss returns the proportional set size of a process in bytes: pages shared by n
// processes count 1/n in each.
func pss(pid int) (int64, error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(rollup)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("no Pss of process %d", pid)
}

// statusBytes returns a size that /proc/PID/status tells.
func statusBytes(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "\n"+field)
	var kib int64
	_, err = fmt.Sscan(after, &kib)
	return kib << 10, err
}

// childrenOf returns the processes that pid started; one that ends meanwhile may
// be left out.
func childrenOf(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var pids []int
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// shimOf finds the shim of a home by its command line.
func shimOf(home string) (int, error) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		line, _ := os.ReadFile(file)
		if bytes.HasSuffix(line, []byte("\x00serve\x00"+home+"\x00")) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}
	return 0, fmt.Errorf("no shim of %s runs", home)
}

// shim is a process that this program did not start itself.
type shim struct {
	pid int
	fd  int // pidfd: names this process even when its number is used again
}

// parentOf finds the shim: what started the box's init.
func parentOf(ctx context.Context, box *core.Box) (shim, error) {
	rec, err := box.Record(ctx)
	if err != nil {
		return shim{}, err
	}
	all, err := processes()
	if err != nil {
		return shim{}, err
	}
	for _, p := range all {
		if p.pid != rec.PID || p.parent <= 1 || p.parent == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(p.parent, 0)
		return shim{p.parent, fd}, err
	}
	return shim{}, fmt.Errorf("no shim is the parent of process %d, the init of %s", rec.PID, box.ID())
}

// wait waits for the end of the process.
func (h shim) wait(timeout time.Duration) error {
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
