package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/record"
	"sandbox/core/engine/rootless"
)

// group is where a box's cgroups are.
type group struct {
	slot string            // the name of its directory in each hierarchy
	own  map[string]string // the paths of its directories by controller, where they are not those of root's boxes
}

// groupOf returns where the cgroups of a box are. Those of the boxes of a user lie where
// root has given the user a directory.
func groupOf(b record.Box) group {
	g := group{slot: b.Slot()}
	if b.UnenforcedLimits {
		return g // it has none, and is in those of whoever started its shim
	}
	if os.Geteuid() != 0 && b.Status.Up() {
		text, _ := lines(fmt.Sprintf("/proc/%d/cgroup", b.Init.PID)) // without it nothing is known
		g.own = rootless.ParseGroups(text)
		for controller, path := range g.own { // on pure cgroup2 that init is in a group of its own below the box's
			g.own[controller] = strings.TrimSuffix(path, "/init")
		}
	}
	return g
}

// read returns a file of the group in the hierarchy of a controller ("" on pure
// cgroup2), and whether it could be read.
func (g group) read(controller, file string) (string, bool) {
	path, known := g.own[controller]
	if !known {
		path = filepath.Join("sandbox", g.slot)
	}
	return lines(filepath.Join("/sys/fs/cgroup", controller, path, file))
}

// number returns the number in a file of the group, or 0.
func (g group) number(controller, file string) int64 {
	s, _ := g.read(controller, file)
	return number(s)
}

// groupUsage returns what a box uses, from its cgroups on the host (cgroup2 or v1). A value
// that can't be read counts as 0.
func groupUsage(g group) core.Usage {
	if stat, ok := g.read("", "cpu.stat"); ok { // cgroup2
		memory, _ := g.read("", "memory.stat")
		u := core.Usage{
			CPU:         time.Duration(field(stat, "usage_usec")) * time.Microsecond,
			MemoryBytes: g.number("", "memory.current"),
			CacheBytes:  field(memory, "file"),
			Processes:   g.number("", "execs/pids.current"),
		}
		if io, ok := g.read("", "io.stat"); ok {
			u.Disk = parseIO(io)
		}
		return u
	}
	memory, _ := g.read("memory", "memory.stat")
	return core.Usage{
		CPU:         time.Duration(g.number("cpuacct", "cpuacct.usage")),
		MemoryBytes: g.number("memory", "memory.usage_in_bytes"),
		CacheBytes:  field(memory, "total_cache"),
		// On v1 the thread of init that starts commands is one of these.
		Processes: max(0, g.number("pids", "execs/pids.current")-1),
	}
}

// mostLines is how many bytes are read of a file of the kernel. Files that are read
// here have a fraction of that.
const mostLines = 16 << 10

// lines returns the whole lines of a file of the kernel, and whether it could be read.
// It takes four system calls, where a file of package os takes nine: a thousand boxes
// are measured at once.
func lines(path string) (string, bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	var buf [mostLines]byte
	n := 0
	for n < len(buf) {
		got, err := unix.Read(fd, buf[n:])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return "", false
		}
		if err == nil && got == 0 {
			return string(buf[:n]), true
		}
		n += max(got, 0)
	}
	return string(buf[:bytes.LastIndexByte(buf[:], '\n')+1]), true
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64) // an empty s counts as 0
	return n
}

// field returns the number after a name that begins a line, or 0 if there is
// none.
func field(s, name string) int64 {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			return number(v)
		}
	}
	return 0
}

// loopMajor is the number of loop devices. What passes through one passes through the
// device below it too, and would be counted twice.
const loopMajor = "7:"

// parseIO returns the sum over the devices of cgroup2's io.stat. A line of it is
// "8:0 rbytes=1 wbytes=2 rios=3 ...".
func parseIO(stat string) *core.DiskTraffic {
	var sum core.DiskTraffic
	for line := range strings.Lines(stat) {
		if strings.HasPrefix(line, loopMajor) {
			continue
		}
		for _, f := range strings.Fields(line) {
			switch name, value, _ := strings.Cut(f, "="); name {
			case "rbytes":
				sum.Read += number(value)
			case "wbytes":
				sum.Written += number(value)
			}
		}
	}
	return &sum
}
