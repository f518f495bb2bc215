package leak

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// processes returns those of the host, by their numbers and starts: the rest of what is
// told changes while they live, and a number comes again. This suite is asked for the
// children of this process, and for the shims and inits of homes in its temporary
// directory, with their children.
func processes() map[string]thing {
	all := map[int]process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			all[pid] = inspect(pid)
		}
	}
	found := map[string]thing{}
	for pid, p := range all {
		name := fmt.Sprintf("process %d (%s, parent %d, state %s): %s", pid, p.Comm, p.PPID, p.State, p.command)
		found[fmt.Sprintf("process %d since %d", pid, p.Starttime)] = thing{name, pid != os.Getpid() && mine(all, pid)}
	}
	return found
}

type process struct {
	procfs.ProcStat
	command    string
	shim, init bool // of whatever home; init is also set for its child that works on files: both run the same program
	inTempDirs bool
	mark       string // of its home: that of an init, and that which a shim gives its inits
}

// inspect returns what can be read of a process; of one that is gone meanwhile, nothing.
func inspect(pid int) process {
	var p process
	if proc, err := procfs.NewProc(pid); err == nil {
		p.ProcStat, _ = proc.Stat()
	}
	dir := fmt.Sprintf("/proc/%d", pid)
	p.command = strings.TrimSpace(strings.ReplaceAll(read(dir+"/cmdline"), "\x00", " "))
	exe, _ := os.Readlink(dir + "/exe")
	p.shim, p.init = strings.Contains(exe, "sandbox-shim"), strings.Contains(exe, "sandbox-init")
	p.inTempDirs = p.shim && mentions(dir, os.TempDir()+"/")
	p.mark = markOf(p, read(dir+"/environ"))
	return p
}

// markOf returns the mark of the home of an init, from its environment, or of a shim, from
// its arguments; "" for another process. The mark is a hash of the home's path.
func markOf(p process, environ string) string {
	const key = "SANDBOX_HOME_MARK="
	switch {
	case p.init:
		for _, variable := range strings.Split(environ, "\x00") {
			if value, ok := strings.CutPrefix(variable, key); ok {
				return value
			}
		}
	case p.shim:
		if args := strings.Fields(p.command); len(args) == 3 {
			h := fnv.New64a()
			_, _ = h.Write([]byte(args[2]))
			return fmt.Sprintf("%x", h.Sum64())
		}
	}
	return ""
}

// mentions tells whether a process has to do with files below dir: by its
// arguments, environment or open files. Its mounts don't tell: a shim of another
// suite starts with a copy of all mounts of the host, and keeps it.
func mentions(proc, dir string) bool {
	for _, name := range []string{"cmdline", "environ"} {
		if strings.Contains(read(proc+"/"+name), dir) {
			return true
		}
	}
	links, _ := filepath.Glob(proc + "/fd/*")
	for _, link := range links {
		if target, _ := os.Readlink(link); strings.HasPrefix(target, dir) {
			return true
		}
	}
	return false
}

// mine tells whether pid, or one that it descends from, belongs to this suite. An init
// whose shim has died belongs to the shim that its home has by now. Where the home has
// none, it can't be told whose it is: it counts.
func mine(all map[int]process, pid int) bool {
	for range len(all) { // parents read at different times could form a ring
		p, ok := all[pid]
		if !ok {
			return false
		}
		if parent := all[p.PPID]; p.init && !parent.shim && !parent.init {
			shim, adopted := shimOf(all, p.mark)
			return !adopted || shim.inTempDirs
		}
		if pid == os.Getpid() || p.inTempDirs {
			return true
		}
		pid = p.PPID
	}
	return false
}

// shimOf returns the shim of the home that has a mark.
func shimOf(all map[int]process, mark string) (process, bool) {
	for _, p := range all {
		if p.shim && p.mark == mark && mark != "" {
			return p, true
		}
	}
	return process{}, false
}
