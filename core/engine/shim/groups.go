package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// groupRoot is where the hierarchies are mounted, and groupParent is where the
// boxes' folders are in each of them.
const (
	groupRoot   = "/sys/fs/cgroup"
	groupParent = "/sandbox"
)

// groups are the cgroup folders of one box. Its own folder has the limits of the
// whole; the box's root may make folders for execs below one of them, and
// touches no limit.
type groups string // the box's id

// folder gives the box's folder in the hierarchy of a v1 controller, or "".
func (g groups) folder(controller string) string {
	return existing(filepath.Join(groupRoot, controller, groupParent, string(g)))
}

// unified gives the box's cgroup2 folder, or "".
func (g groups) unified() string {
	if cgroups.IsCgroup2UnifiedMode() {
		return existing(filepath.Join(groupRoot, groupParent, string(g)))
	}
	return g.folder("unified")
}

// all gives the box's folders in every hierarchy of the host.
func (g groups) all() []string {
	var found []string
	for _, root := range hierarchies() {
		if folder := existing(filepath.Join(root, groupParent, string(g))); folder != "" {
			found = append(found, folder)
		}
	}
	return found
}

// hierarchies gives the folders at which the host's are mounted.
func hierarchies() []string {
	if cgroups.IsCgroup2UnifiedMode() {
		return []string{groupRoot}
	}
	found, _ := filepath.Glob(groupRoot + "/*") // only a bad pattern fails
	return found
}

func existing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// Below the box's folder are one for init and one for the commands: a limit of
// the latter ends a command and never init. v1 leaves init where it is.
const (
	execsFolder = "execs"
	initFolder  = "init"
)

// delegate gives the folder in which init makes a group for each exec: in the
// box's cgroup2 folder, or on a host without cgroup2 in that of the v1 freezer.
// Only folders and lists of processes change owner, no file of limits.
func (g groups) delegate(base int) (*os.File, error) {
	var execs string
	var theirs []string
	if box := g.unified(); box != "" {
		execs = filepath.Join(box, execsFolder)
		// From init's group to an exec's the way leads through the box's.
		theirs = []string{execs, filepath.Join(execs, "cgroup.procs"), filepath.Join(box, "cgroup.procs")}
	} else if box := g.folder("freezer"); box != "" {
		execs = filepath.Join(box, execsFolder)
		theirs = []string{execs, filepath.Join(execs, "tasks")}
	} else {
		return nil, fault.New(fault.Unsupported, "this host has neither cgroup2 nor the v1 freezer mounted below %s", groupRoot)
	}
	if err := os.MkdirAll(execs, 0o755); err != nil {
		return nil, err
	}
	for _, p := range theirs {
		if err := os.Chown(p, base, base); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(execs, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// limit is a file of v1, the same of cgroup2, and what is written there.
type limit struct{ v1, v2, value string }

// execLimits are what the commands of a box are limited to, by controller.
func execLimits(o options.Box) map[string]limit {
	return map[string]limit{
		"memory": {"memory.limit_in_bytes", "memory.max", strconv.FormatInt(int64(o.MemoryMiB)<<20, 10)},
		"pids":   {"pids.max", "pids.max", strconv.Itoa(options.MaxProcesses)},
	}
}

// limitExecs makes the groups that limit the box's commands. pid is init's.
func (g groups) limitExecs(o options.Box, pid int) error {
	pure := cgroups.IsCgroup2UnifiedMode()
	if pure {
		if err := g.moveInit(pid); err != nil {
			return fmt.Errorf("give init a group of its own: %w", err)
		}
	}
	for controller, limit := range execLimits(o) {
		folder, file := g.folder(controller), limit.v1
		if pure {
			folder, file = g.unified(), limit.v2
		}
		if folder == "" {
			return fault.New(fault.Unsupported, "this host has no %s controller mounted at %s/%s", controller, groupRoot, controller)
		}
		folder = filepath.Join(folder, execsFolder)
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(limit.value), 0); err != nil {
			return fmt.Errorf("limit the commands of a box: %w", err)
		}
	}
	return nil
}

// moveInit moves init below the box's folder: in cgroup2 only one without
// processes of its own can have limits below.
func (g groups) moveInit(pid int) error {
	folder := filepath.Join(g.unified(), initFolder)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := cgroups.WriteCgroupProc(folder, pid); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(g.unified(), "cgroup.subtree_control"), []byte("+memory +pids"), 0)
}

// moveSpawner moves the one thread of init that starts commands into their v1
// groups: its children are born there, and init itself stays outside. tid is
// its number in the box, pid init's on the host.
func (g groups) moveSpawner(pid, tid int) error {
	if cgroups.IsCgroup2UnifiedMode() {
		return nil
	}
	host, err := hostTID(pid, tid)
	if err != nil {
		return err
	}
	for controller := range execLimits(options.Box{}) {
		tasks := filepath.Join(groupRoot, controller, groupParent, string(g), execsFolder, "tasks")
		if err := os.WriteFile(tasks, []byte(strconv.Itoa(host)), 0); err != nil {
			return fmt.Errorf("limit the commands of a box: %w", err)
		}
	}
	return nil
}

// hostTID gives the host's number of a thread of process pid that has the
// number tid in its own pid namespace.
func hostTID(pid, tid int) (int, error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	for _, t := range threads {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, t.Name()))
		if err != nil {
			continue // it has ended
		}
		_, line, _ := strings.Cut(string(status), "\nNSpid:")
		line, _, _ = strings.Cut(line, "\n")
		ids := strings.Fields(line)
		if len(ids) > 1 && ids[len(ids)-1] == strconv.Itoa(tid) {
			return strconv.Atoi(ids[0])
		}
	}
	return 0, fmt.Errorf("init has no thread %d", tid)
}

// remove removes the box's folders, which have no process left.
func (g groups) remove() error {
	var errs []error
	for _, path := range g.all() {
		errs = append(errs, cgroups.RemovePath(path))
	}
	return errors.Join(errs...)
}

// kill ends every process of the box.
func (g groups) kill() {
	for _, path := range g.all() {
		killGroup(path)
	}
}

// killGroup ends every process of a group and of those below. What fails here
// shows when the group can't be removed.
func killGroup(path string) {
	if os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	pids, _ := cgroups.GetAllPids(path)
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}
