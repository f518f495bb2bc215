package guest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is the directory in which each exec gets a group of its own, so that its
// whole process tree can be ended, however it forks. The shim made the
// directory and gave it to the box's root; the box itself never sees it.
type tree interface {
	// make makes the group of an exec.
	make(name string) (group, error)
}

// group is the process tree of one exec.
type group interface {
	// enter readies the spawn of the group's first process, on the
	// spawner's thread; leave undoes what has to be undone after it.
	enter(attr *syscall.SysProcAttr) error
	leave()
	// signal sends sig to every process of the group.
	signal(sig unix.Signal) error
	// kill ends every process of the group.
	kill() error
	// remove removes the group; EBUSY while a process is left in it.
	remove() error
}

// newTree tells the kind of the directory from its file system.
func newTree(fd int) (tree, error) {
	unix.CloseOnExec(fd)
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return nil, fmt.Errorf("directory of exec groups: %w", err)
	}
	switch st.Type {
	case unix.CGROUP2_SUPER_MAGIC:
		return unified(fd), nil
	case unix.CGROUP_SUPER_MAGIC:
		return freezer(fd), nil
	}
	return nil, fmt.Errorf("directory of exec groups is on file system %#x, not on a cgroup", st.Type)
}

// dir is a cgroup directory by name and parent.
type dir struct {
	parent int
	name   string
}

func (f dir) mkdir() error  { return unix.Mkdirat(f.parent, f.name, 0o755) }
func (f dir) remove() error { return unix.Unlinkat(f.parent, f.name, unix.AT_REMOVEDIR) }

func (f dir) write(file, value string) error {
	fd, err := unix.Openat(f.parent, f.name+"/"+file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(value))
	return err
}

func (f dir) read(file string) (string, error) {
	fd, err := unix.Openat(f.parent, f.name+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	h := os.NewFile(uintptr(fd), file)
	defer h.Close()
	b, err := readBounded(h, 1<<20)
	return string(b), err
}

// signal goes through the list once: a process that forks meanwhile may be
// missed, which kill makes good.
func (f dir) signal(sig unix.Signal) error {
	procs, err := f.read("cgroup.procs")
	if err != nil {
		return err
	}
	for _, line := range strings.Fields(procs) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			_ = unix.Kill(pid, sig)
		}
	}
	return nil
}

// unified is a cgroup2 directory: processes are born in their group
// (CLONE_INTO_CGROUP) and end with one write.
type unified int

type unifiedGroup struct {
	dir
	fd int
}

func (u unified) make(name string) (group, error) {
	g := &unifiedGroup{dir: dir{int(u), name}}
	if err := g.mkdir(); err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(u), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	g.fd = fd
	return g, err
}

func (g *unifiedGroup) enter(attr *syscall.SysProcAttr) error {
	attr.UseCgroupFD, attr.CgroupFD = true, g.fd
	return nil
}

func (g *unifiedGroup) leave()      { _ = unix.Close(g.fd) }
func (g *unifiedGroup) kill() error { return g.write("cgroup.kill", "1") }

// freezer is a v1 freezer directory, for hosts without cgroup2: the spawner's
// thread enters the group before the fork, and a kill stops the group first so
// that no fork can outrun it.
type freezer int

type freezerGroup struct{ dir }

func (f freezer) make(name string) (group, error) {
	g := &freezerGroup{dir{int(f), name}}
	return g, g.mkdir()
}

func (g *freezerGroup) enter(*syscall.SysProcAttr) error {
	return g.write("tasks", strconv.Itoa(unix.Gettid()))
}

func (g *freezerGroup) leave() {
	_ = dir{g.parent, "."}.write("tasks", strconv.Itoa(unix.Gettid()))
}

// killRounds bounds the freezing of a group that forks all the time; each round
// ends all that it saw, and frozen processes don't fork.
const killRounds = 50

func (g *freezerGroup) kill() error {
	for range killRounds {
		if err := g.write("freezer.state", "FROZEN"); err != nil {
			return err
		}
		procs, err := g.read("cgroup.procs")
		if err == nil && strings.TrimSpace(procs) != "" {
			err = g.signal(unix.SIGKILL)
		}
		if thaw := g.write("freezer.state", "THAWED"); err == nil {
			err = thaw
		}
		if err != nil || strings.TrimSpace(procs) == "" {
			return err
		}
	}
	return unix.EAGAIN
}
