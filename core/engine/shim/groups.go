package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // without it the rules for devices are not applied
	"github.com/opencontainers/cgroups/fs"
	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// Where cgroup v1 holds the limits, or a part of them, the shim makes the
// groups itself and libcontainer none. libcontainer writes the number of a new
// box's first process into each group, and the first such write waits for an
// RCU grace period, 10 to 20 ms. A thread that writes "0", itself, does not
// wait: so a thread joins the box's groups and the box is born in them. Only
// cgroup2, which knows no threads, needs the write; it runs beside the rest.
//
// On pure cgroup2 libcontainer makes the box's group.

const (
	hostGroups  = "/sys/fs/cgroup"   // read-only for this process on v1, see takeGroups
	ourGroups   = stage + "/.cgroup" // the same, writable
	groupParent = "/sandbox"         // the boxes' directory in each hierarchy
)

// Below a box's directory is one for the commands: a limit there ends a command
// and never init. On pure cgroup2, where only a group without processes has
// limited ones below it, init has one too.
const (
	execsDir = "execs"
	initDir  = "init"
)

// groupRoot is where this process reaches the hierarchies.
func groupRoot() string {
	if cgroups.IsCgroup2UnifiedMode() {
		return hostGroups
	}
	return ourGroups
}

// takeGroups keeps the v1 hierarchies from libcontainer, in this mount
// namespace: as for a user without rights over cgroups, it goes on without.
func takeGroups() error {
	mounted, _ := filepath.Glob(hostGroups + "/*/tasks") // only a bad pattern fails
	if cgroups.IsCgroup2UnifiedMode() || len(mounted) == 0 {
		return nil // nothing to keep; a create says what is missing
	}
	if err := os.Mkdir(ourGroups, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(hostGroups, ourGroups, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("take the cgroups: %w", err)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, hostGroups, unix.AT_RECURSIVE, &readOnly); err != nil {
		return fmt.Errorf("take the cgroups: %w", err)
	}
	return nil
}

// withoutGroups is the configuration of a box that libcontainer makes no group for.
func withoutGroups(id string) *cgroups.Cgroup {
	return &cgroups.Cgroup{Name: id, Rootless: true, Resources: &cgroups.Resources{}}
}

// groups are the cgroup directories of one box. Its own directory has the limits of the
// whole; the box's root may make directories for execs below one of them, and
// touches no limit.
type groups string // the box's id

// dir returns the box's directory in the hierarchy of a v1 controller.
func (g groups) dir(controller string) string {
	return filepath.Join(groupRoot(), controller, groupParent, string(g))
}

// unified returns the box's cgroup2 directory.
func (g groups) unified() string {
	if cgroups.IsCgroup2UnifiedMode() {
		return filepath.Join(groupRoot(), groupParent, string(g))
	}
	return g.dir("unified")
}

// hybrid tells whether the host has cgroup2 beside v1.
func hybrid() bool {
	return !cgroups.IsCgroup2UnifiedMode() && exists(filepath.Join(groupRoot(), "unified", "cgroup.procs"))
}

// controllers returns the v1 hierarchies of the host, as libcontainer names
// them, and the box's directory in each.
func (g groups) controllers() map[string]string {
	paths := map[string]string{}
	mounted, _ := filepath.Glob(filepath.Join(groupRoot(), "*", "tasks")) // only a bad pattern fails
	for _, tasks := range mounted {
		name := filepath.Base(filepath.Dir(tasks))
		key := name
		if name == "systemd" {
			key = "name=systemd"
		}
		paths[key] = g.dir(name)
	}
	return paths
}

// all returns those of the box's directories that exist.
func (g groups) all() []string {
	if cgroups.IsCgroup2UnifiedMode() {
		return []string{g.unified()}
	}
	found, _ := filepath.Glob(g.dir("*")) // only a bad pattern fails
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// enter makes the box's v1 groups with their limits and puts the calling
// thread in them, which must be locked and must end soon: it can't go back.
func (g groups) enter(limits *cgroups.Cgroup, o options.Box) error {
	paths := g.controllers()
	for name := range execLimits(o) {
		if paths[name] == "" {
			return fault.New(fault.Unsupported, "this host has no %s controller mounted at %s/%s", name, hostGroups, name)
		}
	}
	m, err := fs.NewManager(limits, paths)
	if err != nil {
		return err
	}
	const nobody = -1
	if err := m.Apply(nobody); err != nil {
		return fmt.Errorf("make the box's cgroups: %w", err)
	}
	if err := m.Set(limits.Resources); err != nil {
		return fmt.Errorf("limit the box: %w", err)
	}
	for _, path := range paths {
		if err := write(path, "tasks", "0"); err != nil {
			return err
		}
	}
	return g.limitExecs(o)
}

// leaveGroups takes the calling thread back into the shim's own v1 groups.
func leaveGroups() {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup") // the main thread's
	if err != nil {
		return // the thread ends soon all the same
	}
	for key := range groups("").controllers() {
		name := strings.TrimPrefix(key, "name=")
		_ = write(filepath.Join(groupRoot(), name, own[key]), "tasks", "0")
	}
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

// limitExecs makes the groups of the box's commands, below those of the box.
func (g groups) limitExecs(o options.Box) error {
	for controller, limit := range execLimits(o) {
		dir, file := g.dir(controller), limit.v1
		if cgroups.IsCgroup2UnifiedMode() {
			dir, file = g.unified(), limit.v2
		}
		dir = filepath.Join(dir, execsDir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := write(dir, file, limit.value); err != nil {
			return fmt.Errorf("limit the commands of a box: %w", err)
		}
	}
	return nil
}

// execTasks opens the lists of the commands' groups. The one thread of init
// that starts commands writes itself into them: its children are born there,
// and init itself stays outside.
func (g groups) execTasks() ([]*os.File, error) {
	if cgroups.IsCgroup2UnifiedMode() {
		return nil, nil
	}
	var tasks []*os.File
	for controller := range execLimits(options.Box{}) {
		f, err := os.OpenFile(filepath.Join(g.dir(controller), execsDir, "tasks"), os.O_WRONLY, 0)
		if err != nil {
			closeAll(tasks)
			return nil, err
		}
		tasks = append(tasks, f)
	}
	return tasks, nil
}

// oomKills opens the file that counts the kernel's kills for want of memory in
// the commands' group. On cgroup2 it is the box's, which counts those below it
// and is there before they are.
func (g groups) oomKills() (*os.File, error) {
	if cgroups.IsCgroup2UnifiedMode() {
		return os.Open(filepath.Join(g.unified(), "memory.events"))
	}
	return os.Open(filepath.Join(g.dir("memory"), execsDir, "memory.oom_control"))
}

// warm makes the RCU grace period pass that the next write of another
// process's number would wait for. It waits itself.
func warm() {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err == nil && hybrid() {
		// Nobody is moved, and nothing depends on it.
		_ = write(filepath.Join(groupRoot(), "pids", own["pids"]), "tasks", strconv.Itoa(os.Getpid()))
	}
}

// adopt puts a new box's init into its cgroup2 group beside v1, where there is one.
func (g groups) adopt(pid int) error {
	if !hybrid() {
		return nil
	}
	return attach(g.unified(), pid)
}

// split makes init and the commands groups of their own on pure cgroup2, where
// the box's group must have no process to have limits below. init must have
// spoken: threads that its exec ends can't be moved, and stay until they ended.
func (g groups) split(pid int, o options.Box) error {
	if !cgroups.IsCgroup2UnifiedMode() {
		return nil
	}
	if err := attach(filepath.Join(g.unified(), initDir), pid); err != nil {
		return err
	}
	if err := write(g.unified(), "cgroup.subtree_control", "+memory +pids"); err != nil {
		return err
	}
	return g.limitExecs(o)
}

func attach(dir string, pid int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return write(dir, "cgroup.procs", strconv.Itoa(pid))
}

// delegate returns the directory in which init makes a group for each exec: in the
// box's cgroup2 directory, or on a host without cgroup2 in that of the v1 freezer.
// Only directories and lists of processes change owner, no file of limits.
//
// What init gets is a mount of its own that is mounted nowhere: the box can
// name init's descriptors (/proc/self/fd/N), and ".." from a directory of the
// host's tree would lead it to all of the host's files.
func (g groups) delegate(base int) (*os.File, error) {
	execs := filepath.Join(g.unified(), execsDir)
	// From init's group to an exec's the way leads through the box's.
	theirs := []string{execs, filepath.Join(execs, "cgroup.procs"), filepath.Join(g.unified(), "cgroup.procs")}
	if !exists(g.unified()) {
		if !exists(g.dir("freezer")) {
			return nil, fault.New(fault.Unsupported, "this host has neither cgroup2 nor the v1 freezer mounted below %s", hostGroups)
		}
		execs = filepath.Join(g.dir("freezer"), execsDir)
		theirs = []string{execs, filepath.Join(execs, "tasks")}
	}
	if err := os.MkdirAll(execs, 0o755); err != nil {
		return nil, err
	}
	for _, p := range theirs {
		if err := os.Chown(p, base, base); err != nil {
			return nil, err
		}
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, execs, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", execs, err)
	}
	return os.NewFile(uintptr(fd), execs), nil
}

// files opens what init needs of the groups, in the order of [wire.TypeConfig].
func (g groups) files(base int) ([]*os.File, error) {
	tree, err := g.delegate(base)
	if err != nil {
		return nil, err
	}
	kills, err := g.oomKills()
	if err != nil {
		_ = tree.Close()
		return nil, err
	}
	tasks, err := g.execTasks()
	if err != nil {
		closeAll([]*os.File{tree, kills})
		return nil, err
	}
	return append([]*os.File{tree, kills}, tasks...), nil
}

// remove removes the box's directories, which have no process left.
func (g groups) remove() error {
	var errs []error
	for _, path := range g.all() {
		errs = append(errs, cgroups.RemovePath(path))
	}
	return errors.Join(errs...)
}

// processes returns the numbers of the box's processes, on the host.
func (g groups) processes() []int {
	var all []int
	for _, path := range g.all() {
		pids, _ := cgroups.GetAllPids(path) // a directory that has gone has none
		all = append(all, pids...)
	}
	return all
}

// kill ends every process of the box.
func (g groups) kill() {
	for _, path := range g.all() {
		killGroup(path)
	}
}

// killRounds bounds the chase after processes that fork meanwhile, where the
// kernel has no cgroup.kill.
const killRounds = 100

// killGroup ends every process of a group and of those below, and waits until
// they have gone. What fails here shows when the group can't be removed.
func killGroup(path string) {
	for range killRounds {
		pids, _ := cgroups.GetAllPids(path)
		if len(pids) == 0 {
			return
		}
		_ = write(path, "cgroup.kill", "1") // cgroup2: all at once
		for _, pid := range pids {
			end(pid)
		}
	}
}

// end kills a process and waits for its end. A thread of a killed shim may
// still be on its way out, in the group it was to start a box in.
func end(pid int) {
	h, err := process.Hold(pid)
	if err != nil {
		return // gone already
	}
	defer h.Close()
	_ = h.Kill()
	_ = h.Wait()
}

// write writes to a file of a group, which must be there.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
