package shim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"sandbox/core/ids"
)

// cpuUse knows which CPUs the boxes of the host are bound to. The zero value is ready
// to use.
type cpuUse struct {
	mu    sync.Mutex
	lists map[string][]int // by the name of a box's group
}

// pick returns n of the host's CPUs for a box, as a list in the kernel's
// notation. It picks those that the fewest boxes use, counting the boxes of all
// homes. Programs that count CPUs in the box (nproc, runtimes that make threads)
// then count those that the box may use. It returns "" when n covers all of
// the CPUs, and when the kernel can't bind a group to CPUs.
func (u *cpuUse) pick(n int) string {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || n >= set.Count() || !hasCpusets() {
		return ""
	}
	parent := groups("").dir("cpuset")
	if unifiedMode() {
		parent = groups("").unified()
	}
	boxes := u.count(parent)
	var cpus []int
	for cpu := range len(set) * strconv.IntSize {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	// Boxes that are made at the same moment do not see one another's CPUs,
	// so the choice among equals is random.
	rand.Shuffle(len(cpus), func(i, j int) { cpus[i], cpus[j] = cpus[j], cpus[i] })
	slices.SortStableFunc(cpus, func(a, b int) int { return boxes[a] - boxes[b] })
	slices.Sort(cpus[:n])
	var picked []string
	for _, cpu := range cpus[:n] {
		picked = append(picked, strconv.Itoa(cpu))
	}
	return strings.Join(picked, ",")
}

func hasCpusets() bool {
	if unifiedMode() {
		return exists(filepath.Join(groupRoot(), "cpuset.cpus.effective"))
	}
	return exists(filepath.Join(groupRoot(), "cpuset", "cpuset.cpus"))
}

// forget drops what is known of a group that is removed: one with its name may come.
func (u *cpuUse) forget(slot string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.lists, slot)
}

// count returns how many boxes of the host, of all homes, are bound to each CPU. Their
// groups are in parent. The list of a group never changes once it is set, so that of
// each is read once: there may be thousands of them. A box of another home that was
// started again may count for the CPUs that it had before.
func (u *cpuUse) count(parent string) map[int]int {
	entries, _ := os.ReadDir(parent) // without it nothing is known of other boxes
	u.mu.Lock()
	defer u.mu.Unlock()
	lists, boxes := make(map[string][]int, len(entries)), map[int]int{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), string(ids.Box)) {
			continue
		}
		cpus := u.lists[e.Name()]
		if cpus == nil {
			text, _ := readShort(filepath.Join(parent, e.Name(), "cpuset.cpus")) // without it the box has just gone
			cpus = parseCPUs(strings.TrimSpace(text))
		}
		lists[e.Name()] = cpus // nil as long as the list is not set
		for _, cpu := range cpus {
			boxes[cpu]++
		}
	}
	u.lists = lists
	return boxes
}

// readShort returns the text of a file of the kernel's that has a page at most.
func readShort(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	buf := make([]byte, os.Getpagesize())
	n, err := unix.Read(fd, buf)
	return string(buf[:max(n, 0)]), err
}

// parseCPUs returns the CPUs of a list such as 0-2,5. It skips what it can't
// read.
func parseCPUs(list string) []int {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			last, _ = strconv.Atoi(to)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// stageCPUInfo returns the file that boxes bound to these CPUs see as
// /proc/cpuinfo. The file is kept for the next box with the same CPUs, in the
// stage, which only the shim sees.
func stageCPUInfo(cpus string) (string, error) {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(cpus))
	name := filepath.Join(stage, fmt.Sprintf(".cpuinfo-%x", sum.Sum64()))
	if exists(name) {
		return name, nil
	}
	all, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(stage, ".cpuinfo-") // two boxes may be started at once
	if err != nil {
		return "", err
	}
	_, err = f.Write(filterCPUs(all, parseCPUs(cpus)))
	if err = errors.Join(err, f.Chmod(0o444), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return name, os.Rename(f.Name(), name)
}

// filterCPUs returns the parts of a /proc/cpuinfo that describe the given CPUs,
// which keep their numbers, and those that describe no CPU. It leaves out the
// present speed of each CPU, as that is out of date a moment later.
func filterCPUs(info []byte, cpus []int) []byte {
	var kept []string
	for block := range strings.SplitSeq(strings.TrimRight(string(info), "\n"), "\n\n") {
		var lines []string
		theirs := true
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(line, ":")
			switch strings.TrimSpace(key) {
			case "cpu MHz":
				continue
			case "processor":
				n, err := strconv.Atoi(strings.TrimSpace(value))
				theirs = err != nil || slices.Contains(cpus, n)
			}
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
		if theirs {
			kept = append(kept, strings.Join(lines, "\n")+"\n")
		}
	}
	return []byte(strings.Join(kept, "\n"))
}
