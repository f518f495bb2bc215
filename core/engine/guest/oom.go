package guest

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// oomKills is the host's file that counts the commands' processes that the
// kernel has killed because the box was out of memory: memory.events of cgroup2,
// or memory.oom_control of v1. The shim opened it; the box can't see it. In a pod, init
// opens that of its container, if it is mounted.
type oomKills struct {
	*os.File
	own atomic.Int64 // by init itself, in a box without cgroups
}

// count returns the number of kills, or 0 if it can't be read. An OOM kill then
// counts as an end by a signal.
func (k *oomKills) count() int {
	own := int(k.own.Load())
	b := make([]byte, 512)
	n, err := unix.Pread(int(k.Fd()), b, 0)
	if err != nil {
		return own
	}
	for line := range strings.Lines(string(b[:n])) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			count, _ := strconv.Atoi(strings.TrimSpace(value))
			return count + own
		}
	}
	return own
}

// ownKills returns the count of the container that init runs in.
func ownKills() *os.File {
	for _, path := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		if f, err := os.Open(path); err == nil {
			return f
		}
	}
	return nil
}
