package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/options"
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

// field returns the number behind a name, at the beginning of a line.
func field(s, name string) int64 {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return number(v)
		}
	}
	return 0
}

// boxInterface is the name of a box's end, see shim/network.
const boxInterface = "eth0"

// traffic reads the counters of a box's interface, where its init sees them:
// whoever asks may be in another network namespace than the shim.
func traffic(b record.Box) *core.Traffic {
	if b.Status != api.Running {
		return nil
	}
	if b.Options.Network == options.NetworkNone {
		return &core.Traffic{}
	}
	devices, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", b.Init.PID))
	if err != nil || b.Init.Ended() { // the number may be another's by now
		return nil
	}
	return parseTraffic(string(devices), boxInterface)
}

// parseTraffic reads the line of one interface in /proc/net/dev: its name,
// eight counts of what came, eight of what went, bytes first.
func parseTraffic(devices, name string) *core.Traffic {
	for line := range strings.Lines(devices) {
		device, counts, _ := strings.Cut(line, ":")
		f := strings.Fields(counts)
		if strings.TrimSpace(device) == name && len(f) >= 16 {
			return &core.Traffic{Received: number(f[0]), Sent: number(f[8])}
		}
	}
	return nil
}
