package guest

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// oomKills is the host's count of the commands' processes that the kernel
// killed for want of memory: memory.events of cgroup2, or memory.oom_control
// of v1. The shim opened it; the box sees it nowhere.
type oomKills struct{ *os.File }

// count returns 0 when it can't be read: a kill is then one by a signal.
func (k oomKills) count() int {
	b := make([]byte, 512)
	n, err := unix.Pread(int(k.Fd()), b, 0)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b[:n])) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			count, _ := strconv.Atoi(strings.TrimSpace(value))
			return count
		}
	}
	return 0
}
