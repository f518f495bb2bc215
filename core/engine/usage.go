package engine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandbox/core"
)

// groupUsage reads what a box uses of the host's cgroups, of whichever layout
// the host has. What can't be read counts as nothing.
func groupUsage(id string) core.Usage {
	group := func(controller, file string) string {
		b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", controller, "sandbox", id, file))
		if err != nil {
			return ""
		}
		return string(b)
	}
	if stat := group("", "cpu.stat"); stat != "" { // cgroup2
		return core.Usage{
			CPU:         time.Duration(field(stat, "usage_usec")) * time.Microsecond,
			MemoryBytes: number(group("", "memory.current")),
		}
	}
	return core.Usage{
		CPU:         time.Duration(number(group("cpuacct", "cpuacct.usage"))),
		MemoryBytes: number(group("memory", "memory.usage_in_bytes")),
	}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64) // nothing counts as 0
	return n
}

// field gives the number behind a name, at the beginning of a line.
func field(s, name string) int64 {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return number(v)
		}
	}
	return 0
}
