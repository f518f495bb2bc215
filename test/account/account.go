// Package account makes the user as whom tests and measurements make boxes without root.
// It needs root, to make that user: with ranges of ids, cgroups, and a network namespace in
// the place of the host's.
package account

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/test/programs"
)

// name is the name of the user.
const name = "sandbox-test-user"

// The network namespace has the address of the host, and outside of it is the other one.
const (
	HostIP    = "198.51.100.2"
	OutsideIP = "198.51.100.1"
)

// patience bounds each command of the user.
const patience = 2 * time.Minute

// User is an ordinary user of the host.
type User struct {
	Home          string // its directory, which every user may look into
	Host, Outside Netns  // the namespace in the place of the host's, and what that reaches
	uid, gid      int
	undo          []func() error // what takes back what was made, the last first
}

// New makes the user until the test ends, which has to leave nothing of the user's.
func New(t *testing.T) *User {
	t.Helper()
	u, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// Make makes the user with all that boxes need, once no other program has it. The caller
// closes it.
func Make() (*User, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root: it makes a user, gives it cgroups and ranges of ids, and makes a network namespace")
	}
	u := &User{}
	for _, step := range []func() error{u.wait, u.register, u.giveIDs, u.openTun, u.delegate, u.network} {
		if err := step(); err != nil {
			return nil, errors.Join(err, u.Close())
		}
	}
	return u, nil
}

// Close removes the user. Errors: something that the user has made is left.
func (u *User) Close() error {
	err := u.nothingLeft()
	for i := len(u.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, u.undo[i]())
	}
	return err
}

func (u *User) later(undo func() error) { u.undo = append(u.undo, undo) }

// wait waits until no other program has the user.
func (u *User) wait() error {
	lock, err := os.Open("/etc")
	if err != nil {
		return err
	}
	u.later(lock.Close)
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX)
}

// register makes the user and the directory, which is not a test's own, as these are
// closed to others.
func (u *User) register() (err error) {
	if u.Home, err = os.MkdirTemp("/tmp", "sandbox-rootless-"); err != nil {
		return err
	}
	u.later(func() error { return os.RemoveAll(u.Home) })
	_ = exec.Command("userdel", name).Run() // left by a test that was killed
	if err := run("useradd", "--system", "--home-dir", u.Home, "--no-create-home", "--shell", "/bin/sh", name); err != nil {
		return err
	}
	u.later(func() error { return run("userdel", name) })
	if u.uid, err = idOf("-u"); err == nil {
		u.gid, err = idOf("-g")
	}
	if err == nil {
		err = errors.Join(os.Chmod(u.Home, 0o755), os.Chown(u.Home, u.uid, u.gid)) //nolint:gosec // for every user
	}
	return err
}

func idOf(which string) (int, error) {
	out, err := exec.Command("id", which, name).Output()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// giveIDs gives the user ranges of ids.
func (u *User) giveIDs() error {
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		was, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			u.later(func() error { return os.Remove(file) })
		case err != nil:
			return err
		default:
			u.later(func() error { return os.WriteFile(file, was, 0o644) }) //nolint:gosec // as on every Unix
		}
		now := append(was[:len(was):len(was)], fmt.Sprintf("%s:%d:65536\n", name, 0x60000000)...)
		if err := os.WriteFile(file, now, 0o644); err != nil { //nolint:gosec // as on every Unix
			return err
		}
	}
	return nil
}

// openTun gives /dev/net/tun the mode that udev gives it.
func (u *User) openTun() error {
	const device = "/dev/net/tun"
	was, err := os.Stat(device)
	if err != nil {
		return err
	}
	u.later(func() error { return os.Chmod(device, was.Mode().Perm()) })
	return os.Chmod(device, 0o666) //nolint:gosec // as on every Debian
}

// groups returns the directories of cgroups that the user is given.
func (u *User) groups() (dirs []string) {
	if unified() {
		given, login := u.unifiedGroup()
		return []string{login, given}
	}
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "freezer"} {
		dirs = append(dirs, fmt.Sprintf("/sys/fs/cgroup/%s/sandbox-%d", controller, u.uid))
	}
	return dirs
}

// unified tells whether the host has pure cgroup2.
func unified() bool {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return err == nil
}

// unifiedGroup is the group that the user is given on pure cgroup2. Its processes are in the
// one below, as one that hands on controllers has none.
func (u *User) unifiedGroup() (given, login string) {
	given = fmt.Sprintf("/sys/fs/cgroup/sandbox-%d", u.uid)
	return given, filepath.Join(given, "login")
}

func (u *User) delegateUnified() error {
	given, login := u.unifiedGroup()
	err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+cpu +memory +pids"), 0)
	if err == nil {
		err = os.MkdirAll(login, 0o755) //nolint:gosec // as every group
	}
	u.later(u.Withdraw)
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "login", "login/cgroup.procs"} {
		err = errors.Join(err, os.Chown(filepath.Join(given, file), u.uid, u.gid))
	}
	return err
}

// delegate gives the user cgroups.
func (u *User) delegate() error {
	if unified() {
		return u.delegateUnified()
	}
	u.later(u.Withdraw)
	for _, dir := range u.groups() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), all, 0o644) //nolint:gosec // as in every group
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := u.Own(dir); err != nil {
			return err
		}
	}
	return nil
}

// Withdraw takes the cgroups back. They are empty.
func (u *User) Withdraw() error {
	if unified() {
		u.removeLast()
	}
	for _, dir := range u.groups() {
		err := os.Remove(dir)
		for deadline := time.Now().Add(patience / 10); errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline); err = os.Remove(dir) {
			time.Sleep(10 * time.Millisecond) // a process that has ended leaves its group a little later
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			left, _ := filepath.Glob(dir + "/*")
			return fmt.Errorf("a cgroup of the user is left: %w with %v", err, left)
		}
	}
	return nil
}

// removeLast removes the groups in which the last shim and the process outside were: on
// pure cgroup2 they can't leave them, as no group above may have processes.
func (u *User) removeLast() {
	given, _ := u.unifiedGroup()
	for _, pattern := range []string{"sandbox/shim-*", "outside-*", "sandbox"} {
		left, _ := filepath.Glob(filepath.Join(given, pattern))
		for _, dir := range left {
			_ = os.Remove(dir) // one that is in use shows next
		}
	}
}

// network makes the network namespace that is the user's host, and another one that is
// outside of it.
func (u *User) network() (err error) {
	for _, n := range []*Netns{&u.Host, &u.Outside} {
		if *n, err = u.namespace(); err != nil {
			return err
		}
	}
	err = run("nsenter", u.Outside.Option(), "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(int(u.Host)))
	for _, line := range []string{"address add " + OutsideIP + "/24 dev eth0", "link set eth0 up"} {
		err = errors.Join(err, u.Outside.IP(line))
	}
	for _, line := range []string{"link set lo up", "address add " + HostIP + "/24 dev eth0", "link set eth0 up", "route add default via " + OutsideIP} {
		err = errors.Join(err, u.Host.IP(line))
	}
	return err
}

// Netns is a network namespace: the number of the process that keeps it. A name would be
// a mount, and a link to this host's namespace would be a new address of this host: the
// suites that run beside this one would meet both.
type Netns int

func (u *User) namespace() (Netns, error) {
	keeper := exec.Command("unshare", "--net", "sh", "-c", "echo made; exec sleep infinity")
	made, err := keeper.StdoutPipe()
	if err == nil {
		err = keeper.Start()
	}
	if err != nil {
		return 0, err
	}
	u.later(func() error {
		_, _ = keeper.Process.Kill(), keeper.Wait()
		return nil
	})
	_, err = made.Read(make([]byte, 16))
	return Netns(keeper.Process.Pid), err
}

// Option is the option of nsenter for the namespace.
func (n Netns) Option() string { return fmt.Sprintf("--net=/proc/%d/ns/net", n) }

// IP runs a command of ip in the namespace.
func (n Netns) IP(line string) error {
	return run("nsenter", append([]string{n.Option(), "ip"}, strings.Fields(line)...)...)
}

// ID returns the numbers of the user and of the user's group, with a colon between them.
func (u *User) ID() string { return fmt.Sprintf("%d:%d", u.uid, u.gid) }

// Own gives the user a file and all below it.
func (u *User) Own(path string) error { return run("chown", "-R", "-h", u.ID(), path) }

// Programs gives the user the programs that make build has built, and returns the
// directory that they are in. Those that tests use as root may lie where no other user may
// look.
func (u *User) Programs() (dir string, err error) {
	dir = filepath.Join(u.Home, "programs")
	err = os.MkdirAll(filepath.Join(dir, "lib"), 0o755) //nolint:gosec // for the user
	for _, file := range []string{"sandbox", "sandbox-init", "sandbox-shim", "sandbox-logs", "lib/libchdb.so"} {
		err = errors.Join(err, Give(filepath.Join(programs.Dir(), file), filepath.Join(dir, file)))
	}
	return dir, err
}

// Give makes a file another name, or a copy if there can be none, that a user may read.
func Give(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if os.Link(from, to) == nil { // the log engine is half a gigabyte
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755) //nolint:gosec // a program
}

func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %s", program, args, err, out)
	}
	return nil
}
