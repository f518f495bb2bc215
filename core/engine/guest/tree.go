package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is the cgroup directory in which each exec gets a group of its own, so
// that its whole process tree can be ended, however it forks. The shim made the
// directory and made the box's root its owner; the box itself never sees it.
type tree interface {
	// make makes the group of an exec.
	make(name string) (group, error)
}

// group is the process tree of one exec.
type group interface {
	// enter prepares the start of the group's first process, and leave undoes
	// what must not stay after it. Both are called on the spawner's thread.
	enter(attr *syscall.SysProcAttr) error
	leave()
	// signal sends sig to every process of the group.
	signal(sig unix.Signal) error
	// kill ends every process of the group.
	kill() error
	// remove removes the group. The error is EBUSY while it has a process.
	remove() error
}

// newTree returns the tree for a cgroup directory, whose file system tells
// whether it is of cgroup2 or of v1. For /dev/null it returns a tree of marks.
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
	var file unix.Stat_t
	if unix.Fstat(fd, &file) == nil && file.Mode&unix.S_IFMT == unix.S_IFCHR { // /dev/null: the box has no cgroups
		_ = unix.Close(fd)
		return newMarks()
	}
	return nil, fmt.Errorf("directory of exec groups is on file system %#x, not on a cgroup", st.Type)
}

// dir is a cgroup directory, identified by its parent's descriptor and its name.
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
	for {
		// The kernel may leave a write to a group at a signal, of which the Go runtime
		// sends its own threads some.
		if _, err = unix.Write(fd, []byte(value)); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (f dir) read(file string) (string, error) {
	fd, err := unix.Openat(f.parent, f.name+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	h := os.NewFile(uintptr(fd), file)
	defer h.Close()
	b, err := io.ReadAll(io.LimitReader(h, 1<<20))
	return string(b), err
}

// signal goes through the list of processes once. It may miss a process that is
// forked meanwhile; a later kill ends that one too.
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

// unified is a cgroup2 directory. The first process of a group starts in it
// (CLONE_INTO_CGROUP), and one write kills the whole group.
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

// freezer is a cgroup v1 freezer directory, for hosts without cgroup2. The
// spawner's thread enters the group before the fork. A kill freezes the group
// first, so that no fork can outrun it.
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

// killRounds bounds how often a group that forks all the time is frozen. Each
// round kills all processes that it sees, and frozen processes don't fork.
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
