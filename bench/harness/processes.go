package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is a process as /proc shows it.
type Process struct{ PID, Parent, Session int }

// Processes returns all processes of /proc. One that ends meanwhile is left
// out.
func Processes() ([]Process, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	var all []Process
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var p Process
		var state string
		var group int
		p.PID, _ = strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// The fields begin behind the name, which is in brackets and may
		// contain anything.
		_, err = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &p.Parent, &group, &p.Session)
		if err == nil && state != "Z" {
			all = append(all, p)
		}
	}
	return all, err
}

// PSS returns the proportional set size of a process in bytes: pages shared by n
// processes count 1/n in each.
func PSS(pid int) (int64, error) {
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

// StatusBytes returns a size that is in /proc/PID/status, in bytes.
func StatusBytes(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "\n"+field)
	var kib int64
	_, err = fmt.Sscan(after, &kib)
	return kib << 10, err
}

// ChildrenOf returns the processes that pid started. One that ends meanwhile
// may be left out.
func ChildrenOf(pid int) []int {
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
