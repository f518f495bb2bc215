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

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
	"sandbox/core/ids"
)

// pickCPUs gives, as the kernel writes them, n of the host's CPUs for a box:
// those that the fewest boxes have, of whatever home. What counts CPUs in the
// box (nproc, runtimes that make threads) then counts what it may use. It
// gives "" for all of them, and where the kernel can't bind a group to CPUs.
func pickCPUs(n int) string {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || n >= set.Count() || !hasCpusets() {
		return ""
	}
	boxes := map[int]int{} // by CPU
	for _, list := range cpuLists() {
		for _, cpu := range parseCPUs(list) {
			boxes[cpu]++
		}
	}
	var cpus []int
	for cpu := range len(set) * strconv.IntSize {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	// Boxes that are made at the same moment do not see one another.
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
	if cgroups.IsCgroup2UnifiedMode() {
		return exists(filepath.Join(groupRoot(), "cpuset.cpus.effective"))
	}
	return exists(filepath.Join(groupRoot(), "cpuset", "cpuset.cpus"))
}

// cpuLists returns the CPUs of each box that there is.
func cpuLists() []string {
	every := groups(string(ids.Box) + "*").dir("cpuset")
	if cgroups.IsCgroup2UnifiedMode() {
		every = groups(string(ids.Box) + "*").unified()
	}
	files, _ := filepath.Glob(filepath.Join(every, "cpuset.cpus")) // only a bad pattern fails
	var lists []string
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			lists = append(lists, strings.TrimSpace(string(b)))
		}
	}
	return lists
}

// parseCPUs reads a list such as 0-2,5.
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
// /proc/cpuinfo. It stays for the next such box; the stage is the shim's.
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
	f, err := os.CreateTemp(stage, ".cpuinfo-") // two boxes may come at once
	if err != nil {
		return "", err
	}
	_, err = f.Write(filterCPUs(all, parseCPUs(cpus)))
	if err = errors.Join(err, f.Chmod(0o444), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return name, os.Rename(f.Name(), name)
}

// filterCPUs leaves of a /proc/cpuinfo what is of the given CPUs, which keep
// their numbers, and what is of none. How fast a CPU is at the moment would be
// untrue the moment after.
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
