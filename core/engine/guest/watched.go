package guest

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// brake is how many times the memory of the box one process may have of its own, until the
// watch, which sees all of them, has looked. Programs reserve more than they use.
const brake = 4

// limit gives a command the limits of a box without cgroups. What it has forked before, they
// don't bind.
func (g *guest) limit(pid int) {
	w := g.config.Watched
	if w == nil {
		return
	}
	for resource, most := range map[int]int64{unix.RLIMIT_NPROC: int64(w.Processes), unix.RLIMIT_DATA: brake * w.MemoryBytes} {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: uint64(most), Max: uint64(most)}, nil) //nolint:gosec // positive
	}
}

// looking is how often the memory is looked at: the kernel tells nobody of it.
const looking = 100 * time.Millisecond

// watchMemory kills the largest process of the box when all together have more memory than the
// box may have.
func (g *guest) watchMemory(most int64) {
	for range time.Tick(looking) {
		var all, largest int64
		largestPID := 0
		entries, _ := os.ReadDir("/proc") // it can always be read
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == 1 {
				continue
			}
			bytes := memoryOf(pid)
			if all += bytes; bytes > largest {
				largest, largestPID = bytes, pid
			}
		}
		if all > most {
			g.oom.own.Add(1) // before its end is noticed
			_ = unix.Kill(largestPID, unix.SIGKILL)
		}
	}
}

// memoryOf returns how many bytes of memory a process has that it does not share.
func memoryOf(pid int) int64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm") // of one that has ended there is none
	f := strings.Fields(string(text))
	if len(f) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(f[1], 10, 64)
	shared, _ := strconv.ParseInt(f[2], 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}
