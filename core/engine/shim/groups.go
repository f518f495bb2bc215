package shim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // without this import the rules for devices are not applied on cgroup2
	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// On a host where cgroup v1 holds the limits, or a part of them, the shim makes
// the groups itself and libcontainer makes none. libcontainer would write the
// number of a new box's first process into each group, and the first such write
// waits for an RCU grace period of 10 to 20 ms. A thread that writes "0", which
// stands for itself, does not wait. So a thread of the shim joins the box's
// groups, and the box's first process is born in them. Only a cgroup2 hierarchy
// beside v1, which can't move single threads, needs the write of a number; that
// write runs in parallel with the rest.
//
// On pure cgroup2 libcontainer makes the box's group.

const (
	hostGroups  = "/sys/fs/cgroup"   // on v1 takeGroups makes it read-only for this process
	ourGroups   = stage + "/.cgroup" // the same hierarchies, writable
	groupParent = "/sandbox"         // the boxes' directory in each hierarchy
)

// Below a box's group is one for its commands: when a limit there is exceeded, a
// command ends and never init. On pure cgroup2 init has a group of its own too,
// because only a group without processes can have groups with limits below it.
const (
	execsDir = "execs"
	initDir  = "init"
)

// unifiedMode tells whether the boxes of this home have groups of pure cgroup2.
func unifiedMode() bool { return noGroups == "" && cgroups.IsCgroup2UnifiedMode() }

// groupRoot returns the directory through which this process changes the
// cgroup hierarchies.
func groupRoot() string {
	if unifiedMode() {
		return hostGroups
	}
	return ourGroups
}

// takeGroups makes the v1 hierarchies read-only in this mount namespace, and
// keeps a writable mount of them for the shim. libcontainer then makes no groups
// and goes on without, as it does for a user without rights over cgroups.
func takeGroups() error {
	if _, err := hierarchyNames(); err != nil {
		return fmt.Errorf("look at the host's cgroups: %w", err)
	}
	mounted, _ := filepath.Glob(hostGroups + "/*/tasks") // only a bad pattern fails
	if unifiedMode() || len(mounted) == 0 {
		return nil // there is nothing to take; creating a box reports what is missing
	}
	if err := os.Mkdir(ourGroups, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(hostGroups, ourGroups, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make the host's cgroups read-only for the shim: %w", err)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, hostGroups, unix.AT_RECURSIVE, &readOnly); err != nil {
		return fmt.Errorf("make the host's cgroups read-only for the shim: %w", err)
	}
	return nil
}

// withoutGroups returns the cgroup configuration of a box for which libcontainer
// is to make no groups. The parent is an absolute path, so that libcontainer need not
// look for that of this process, which it does once for each hierarchy.
func withoutGroups(id string) *cgroups.Cgroup {
	return &cgroups.Cgroup{Name: id, Parent: "/", Rootless: true, Resources: &cgroups.Resources{}}
}

// groups stands for the cgroup directories of one box. The box's own directory
// in each hierarchy has the limits of the whole box. Below one of them the box's
// root may make directories for execs, but it can't change any limit.
type groups string // the box's slot

// dir returns the box's directory in the hierarchy of a v1 controller.
func (g groups) dir(controller string) string {
	return filepath.Join(groupRoot(), controller, groupParent, string(g))
}

// unified returns the box's cgroup2 directory.
func (g groups) unified() string {
	if unifiedMode() {
		return filepath.Join(groupRoot(), groupParent, string(g))
	}
	return g.dir("unified")
}

// hybrid reports whether the host has cgroup2 beside v1.
func hybrid() bool {
	return !unifiedMode() && exists(filepath.Join(groupRoot(), "unified", "cgroup.procs"))
}

// controllers returns the box's directory in each v1 hierarchy of the host, by the
// hierarchy's name.
func (g groups) controllers() map[string]string {
	paths := map[string]string{}
	names, _ := hierarchyNames() // known since the shim began
	for _, name := range names {
		if exists(filepath.Join(groupRoot(), name, "tasks")) {
			paths[name] = g.dir(name)
		}
	}
	return paths
}

// all returns the box's directories: its one directory on pure cgroup2, and
// elsewhere those in all hierarchies that exist.
func (g groups) all() []string {
	if unifiedMode() {
		return []string{g.unified()}
	}
	names, _ := hierarchyNames() // known since the shim began
	var found []string
	for _, name := range names {
		if dir := g.dir(name); exists(dir) {
			found = append(found, dir)
		}
	}
	return found
}

// namesOnce are the names of the host's hierarchies, once they have been read.
var namesOnce atomic.Pointer[[]string]

// hierarchyNames returns the names of what lies where hierarchies are mounted. They
// are read once, when the shim begins: a shim that is short of descriptors must not
// take a box's groups for gone because it can't list them.
func hierarchyNames() ([]string, error) {
	if known := namesOnce.Load(); known != nil {
		return *known, nil
	}
	entries, err := os.ReadDir(hostGroups)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	namesOnce.Store(&names)
	return names, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// enter makes the box's v1 groups with their limits and moves the calling thread
// into them. The goroutine must be locked to the thread, and the thread must end
// soon: it stays in the box's groups, unless leaveGroups moves it back.
func (g groups) enter(limits *cgroups.Resources, o options.Box) error {
	if noGroups != "" {
		return nil
	}
	paths := g.controllers()
	for name := range execLimits(o) {
		if paths[name] == "" {
			return fault.New(fault.Unsupported, "this host has no %s controller mounted at %s/%s", name, hostGroups, name)
		}
	}
	for name, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("make the box's cgroups: %w", err)
		}
		if err := limitGroup(name, path, limits); err != nil {
			return fmt.Errorf("limit the box: %w", err)
		}
		if err := write(path, "tasks", "0"); err != nil {
			return err
		}
	}
	return g.limitExecs(o)
}

// leaveGroups moves the calling thread back into the shim's own v1 groups.
func leaveGroups() {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup") // the main thread's
	if err != nil {
		return // the thread ends soon all the same
	}
	for name := range groups("").controllers() {
		path := cmp.Or(own[name], own["name="+name]) // the latter for a hierarchy without a controller
		_ = write(filepath.Join(groupRoot(), name, inGiven(name, path)), "tasks", "0")
	}
}

// limit is the name of a limit's file on v1 and on cgroup2, and the value to
// write there.
type limit struct{ v1, v2, value string }

// maxTasks returns how many processes and threads the commands of a box may have.
func maxTasks(o options.Box) int { return cmp.Or(o.Processes, options.DefaultProcesses) }

// execLimits returns the limits of a box's commands, by controller.
func execLimits(o options.Box) map[string]limit {
	return map[string]limit{
		"memory": {"memory.limit_in_bytes", "memory.max", strconv.FormatInt(int64(o.MemoryMiB)<<20, 10)},
		"pids":   {"pids.max", "pids.max", strconv.Itoa(maxTasks(o))},
	}
}

// limitExecs makes the groups of the box's commands, with their limits, below
// those of the box.
func (g groups) limitExecs(o options.Box) error {
	for controller, limit := range execLimits(o) {
		dir, file := g.dir(controller), limit.v1
		if unifiedMode() {
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

// execTasks opens the "tasks" files of the commands' v1 groups; on pure cgroup2
// it opens none. The one thread of init that starts commands writes itself into
// them, so that its children are born in these groups while the rest of init
// stays outside.
func (g groups) execTasks() ([]*os.File, error) {
	if unifiedMode() {
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

// oomKills opens the file in which the kernel counts the processes that it
// killed in the commands' group for lack of memory. On cgroup2 it opens the file
// of the box's group, which also counts for the groups below it and exists
// before they do.
func (g groups) oomKills() (*os.File, error) {
	if unifiedMode() {
		return os.Open(filepath.Join(g.unified(), "memory.events"))
	}
	return os.Open(filepath.Join(g.dir("memory"), execsDir, "memory.oom_control"))
}

// warm waits for an RCU grace period, so that the next write of another
// process's number into a group need not wait for one. It does nothing on a host
// without cgroup2 beside v1.
func warm() {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err == nil && !asUser && hybrid() {
		// The process is in this group already, so the write moves nothing,
		// and its failure does no harm.
		_ = write(filepath.Join(groupRoot(), "pids", own["pids"]), "tasks", strconv.Itoa(os.Getpid()))
	}
}

// adopt moves a new box's init into the box's cgroup2 group on a host that has
// cgroup2 beside v1. On other hosts it does nothing.
func (g groups) adopt(pid int) error {
	if !hybrid() {
		return nil
	}
	return attach(g.unified(), pid)
}

// split makes one group for init and one for the commands on pure cgroup2, where
// the box's group must have no processes if groups below it are to have limits.
// Call it only after init has reported that it is ready: threads that init's
// exec ends can't be moved, and stay in the box's group until they have ended.
func (g groups) split(pid int, o options.Box) error {
	if !unifiedMode() {
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

// delegate returns the directory in which init makes a group for each exec. It
// lies in the box's cgroup2 directory, or on a host without cgroup2 in that of
// the v1 freezer. The box's root becomes the owner of this directory and of the
// lists of processes, but of no file with a limit.
//
// The descriptor is of a separate mount that is attached nowhere. The box can
// name init's descriptors (/proc/self/fd/N), and if this one were of a directory
// in the host's tree, ".." would lead the box to all of the host's files.
func (g groups) delegate(base int) (*os.File, error) {
	execs := filepath.Join(g.unified(), execsDir)
	// To move a process from init's group to an exec's, one must be allowed to
	// write to the list of processes of the group above both, the box's.
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

// files opens the files of the groups that init needs, in the order that
// [wire.TypePrepare] says. Of a box without groups they are /dev/null.
func (g groups) files(base int) ([]*os.File, error) {
	if noGroups != "" {
		return noFiles()
	}
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

// remove removes the box's directories. No process may be left in them.
func (g groups) remove() error {
	var errs []error
	for _, path := range g.all() {
		errs = append(errs, cgroups.RemovePath(path))
	}
	return errors.Join(errs...)
}

// processes returns the process ids of the box's processes on the host.
func (g groups) processes() []int {
	var all []int
	for _, path := range g.all() {
		pids, _ := cgroups.GetAllPids(path) // a directory that has gone has none
		all = append(all, pids...)
	}
	return all
}

// kill ends every process of the box. It thaws a paused one: the v1 freezer holds
// even processes that were killed.
func (g groups) kill() {
	g.thaw()
	for _, path := range g.all() {
		killGroup(path)
	}
}

// killRounds bounds how often killGroup lists and kills the processes of a group.
// Where the kernel has no cgroup.kill, processes that fork meanwhile take more
// than one round.
const killRounds = 100

// killGroup kills every process of a group and of the groups below it, and waits
// until they have ended. It reports no errors: a process that is left shows
// later, as the group can't be removed.
func killGroup(path string) {
	for range killRounds {
		pids, _ := cgroups.GetAllPids(path)
		// A thread of ours that could not leave is in here by its process.
		pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() })
		if len(pids) == 0 {
			return
		}
		_ = write(path, "cgroup.kill", "1") // on cgroup2 this kills all at once
		for _, pid := range pids {
			end(path, pid)
		}
	}
}

// end kills a process of a group and waits until it has ended. It may be a killed shim,
// of which a thread is still ending in the group where it was to start a box. A process
// that is not in the group has the number of one that has ended since it was listed.
func end(path string, pid int) {
	h, err := process.Hold(pid)
	if err != nil {
		return // gone already
	}
	defer h.Close()
	if pids, _ := cgroups.GetAllPids(path); !slices.Contains(pids, pid) {
		return
	}
	_ = h.Kill()
	_ = h.Wait()
}

// write writes a value to a file of a group or of /proc. The file must exist. It
// takes three system calls, where a file of package os takes nine.
func write(dir, file, value string) error {
	path := filepath.Join(dir, file)
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for {
		// A limit of memory is set by a call that any signal interrupts, those that the
		// Go runtime sends its own threads too.
		if _, err := unix.Write(fd, []byte(value)); err == nil {
			return nil
		} else if !errors.Is(err, unix.EINTR) {
			return &os.PathError{Op: "write", Path: path, Err: err}
		}
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
