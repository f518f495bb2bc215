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

// groups are the cgroup folders of one box. Its own folder holds init and the
// limits of the whole; the box's root may make folders for execs in one of
// them, and touches no limit.
type groups string // the box's id

// groupsMounted tells whether the host has any hierarchy where it should be.
func groupsMounted() bool {
	found, _ := filepath.Glob(groupRoot + "/*/cgroup.procs") // only a bad pattern fails
	return cgroups.IsCgroup2UnifiedMode() || len(found) > 0
}

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
	if cgroups.IsCgroup2UnifiedMode() {
		return []string{g.unified()}
	}
	found, _ := filepath.Glob(filepath.Join(groupRoot, "*", groupParent, string(g))) // only a bad pattern fails
	return found
}

func existing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// execsFolder is the v1 group in which the commands are, beside init: a limit
// there ends a command and never init.
const execsFolder = "execs"

// delegate gives the folder in which init makes a group for each exec: the
// box's cgroup2 folder, or on a host without cgroup2 one of the v1 freezer.
// Only the folder and its list of processes change owner, no file of limits.
// It is a mount of its own that is mounted nowhere: the box can name init's
// descriptors (/proc/self/fd/N), and ".." from a folder of the host's tree
// would lead it to all of the host's files.
func (g groups) delegate(base int) (*os.File, error) {
	path, list := g.unified(), "cgroup.procs"
	if path == "" {
		freezer := g.folder("freezer")
		if freezer == "" {
			return nil, fault.New(fault.Unsupported, "this host has neither cgroup2 nor the v1 freezer mounted below %s", groupRoot)
		}
		path, list = filepath.Join(freezer, execsFolder), "tasks"
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	for _, p := range []string{path, filepath.Join(path, list)} {
		if err := os.Chown(p, base, base); err != nil {
			return nil, err
		}
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// execLimits are what v1 limits the commands of a box to, by controller.
func execLimits(o options.Box) map[string][2]string {
	return map[string][2]string{
		"memory": {"memory.limit_in_bytes", strconv.FormatInt(int64(o.MemoryMiB)<<20, 10)},
		"pids":   {"pids.max", strconv.Itoa(options.MaxProcesses)},
	}
}

// limitExecs makes the groups of the box's commands where v1 holds the limits.
// On pure cgroup2 the box's own limits are enough.
func (g groups) limitExecs(o options.Box) error {
	if cgroups.IsCgroup2UnifiedMode() {
		return nil
	}
	for controller, limit := range execLimits(o) {
		folder := g.folder(controller)
		if folder == "" {
			return fault.New(fault.Unsupported, "this host has no %s controller mounted at %s/%s", controller, groupRoot, controller)
		}
		folder = filepath.Join(folder, execsFolder)
		if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, limit[0]), []byte(limit[1]), 0); err != nil {
			return fmt.Errorf("limit the commands of a box: %w", err)
		}
	}
	return nil
}

// moveSpawner moves the one thread of init that starts commands into their
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
