package attack_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandbox/core"
	"sandbox/core/options"
	"sandbox/test/boxes"
)

// stopping is what the kernel itself may still use to stop a process, which runs none
// of its own instructions any more: one that is traced gets there when its tracer has
// stopped.
const stopping = 500 * time.Microsecond

// No process of a box gets out of a pause: not one that is hard to stop, nor one that
// has tried to leave the group of the box's commands. While the box is paused, its
// commands do not work.
func TestNoWayOutOfAPause(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	intruder(t, b.Root)
	leave := `mkdir -p /tmp/g; mount -t cgroup2 none /tmp/g; mount -t cgroup -o freezer none /tmp/g
		for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/*/tasks /proc/1/fd/*/cgroup.procs /proc/1/cwd/cgroup.procs /tmp/g/cgroup.procs; do
			echo $$ >$f
		done 2>/dev/null
		echo ready; while :; do :; done`
	for name, cmd := range map[string][]string{
		"vfork": {"intruder", "vfork"}, "traced": {"intruder", "traced"}, "forks": {"intruder", "forks"},
		"leaves": {"sh", "-c", leave}, "spins": {"sh", "-c", "echo ready; while :; do :; done"},
		"ignores": {"sh", "-c", "trap '' TERM CONT TSTP HUP; echo ready; while :; do :; done"},
	} {
		p, err := b.Engine.Exec(t.Context(), b.ID, options.Exec{Cmd: cmd})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		ready(t, name, p)
	}
	for range 20 {
		if _, err := b.Engine.Pause(t.Context(), b.ID, false); err != nil {
			t.Fatal(err)
		}
		if moved := workOf(t, b, 5*time.Millisecond); moved > stopping {
			t.Errorf("the commands of a paused box worked for %v", moved)
		}
		if _, err := b.Engine.Resume(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
	}
	boxes.Await(t, "the commands of a resumed box to work", func() bool { // a busy host may let them wait
		return workOf(t, b, 5*time.Millisecond) > 0
	})
	b.Lives(t)
}

// ready waits for the first line of a command.
func ready(t *testing.T, name string, p *core.Process) {
	t.Helper()
	line := make([]byte, 16)
	boxes.Await(t, name, func() bool {
		n, err := p.Stdout.Read(line)
		return err == nil && n > 0
	})
}

// workOf returns the CPU time that all processes of a box but its init use in a time.
func workOf(t *testing.T, b *boxes.Box, in time.Duration) time.Duration {
	t.Helper()
	before := work(t, b)
	time.Sleep(in) // what is measured
	return work(t, b) - before
}

// work returns the CPU time that the first threads of a box's processes have used,
// without that of its init.
func work(t *testing.T, b *boxes.Box) time.Duration {
	t.Helper()
	space, err := os.Readlink("/proc/" + strconv.Itoa(b.PID) + "/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	var used int64
	for _, dir := range all {
		if in, _ := os.Readlink(dir + "/ns/pid"); in != space || dir == "/proc/"+strconv.Itoa(b.PID) {
			continue
		}
		stat, _ := os.ReadFile(dir + "/schedstat") // its first number is in ns; the process may have ended
		fields := strings.Fields(string(stat))
		if len(fields) > 0 {
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			used += n
		}
	}
	return time.Duration(used)
}
