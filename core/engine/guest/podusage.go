package guest

import (
	"os"
	"strconv"
	"strings"
	"time"

	"sandbox/core/engine/wire"
)

// These are the files in which a pod's container sees what it has used, on cgroup2 and
// on v1.
const (
	unifiedGroups = "/sys/fs/cgroup"
	cpuGroup      = "/sys/fs/cgroup/cpuacct"
	memoryGroup   = "/sys/fs/cgroup/memory"
	tasksGroup    = "/sys/fs/cgroup/pids"
)

// ownUse returns what the box has used, or nil if the container does not see it.
func ownUse() *wire.Used {
	if cpu, err := os.ReadFile(unifiedGroups + "/cpu.stat"); err == nil {
		return &wire.Used{
			CPUNS:       field(string(cpu), "usage_usec") * int64(time.Microsecond),
			MemoryBytes: figure(unifiedGroups + "/memory.current"), CacheBytes: cached(unifiedGroups+"/memory.stat", "file"),
			Processes: figure(unifiedGroups + "/pids.current"),
		}
	}
	if _, err := os.Stat(cpuGroup + "/cpuacct.usage"); err != nil {
		return nil
	}
	return &wire.Used{
		CPUNS: figure(cpuGroup + "/cpuacct.usage"), MemoryBytes: figure(memoryGroup + "/memory.usage_in_bytes"),
		CacheBytes: cached(memoryGroup+"/memory.stat", "total_cache"), Processes: figure(tasksGroup + "/pids.current"),
	}
}

// figure returns the number in a file, or 0.
func figure(file string) int64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

func cached(file, name string) int64 {
	text, _ := os.ReadFile(file)
	return field(string(text), name)
}

// field returns the number behind a name at the beginning of a line, or 0.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
