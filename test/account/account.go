// Package account makes the user as whom tests make boxes without root. They need root, to
// make that user: with ranges of ids, cgroups, and a network namespace in the place of the
// host's.
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
}

// New makes the user with all that boxes need, until the test ends.
func New(t *testing.T) *User {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: it makes a user, gives it cgroups and ranges of ids, and makes a network namespace")
	}
	onlyOne(t)
	// A test's own temporary directory is closed to others.
	home, err := os.MkdirTemp("/tmp", "sandbox-rootless-")
	must(t, err)
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		restoreAfter(t, file)
	}
	_ = exec.Command("userdel", name).Run() // left by a test that was killed
	run(t, "useradd", "--system", "--home-dir", home, "--no-create-home", "--shell", "/bin/sh", name)
	t.Cleanup(func() {
		run(t, "userdel", name)
		must(t, os.RemoveAll(home))
	})
	u := &User{Home: home, uid: idOf(t, "-u"), gid: idOf(t, "-g")}
	must(t, os.Chmod(home, 0o755))
	must(t, os.Chown(home, u.uid, u.gid))
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		appendTo(t, file, fmt.Sprintf("%s:%d:65536\n", name, 0x60000000))
	}
	openTun(t)
	u.delegate(t)
	u.network(t)
	t.Cleanup(func() { u.wantNothingLeft(t) })
	return u
}

// onlyOne waits until no other suite has the user, until the test ends.
func onlyOne(t *testing.T) {
	t.Helper()
	lock, err := os.Open("/etc")
	must(t, err)
	t.Cleanup(func() { must(t, lock.Close()) })
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
}

// Own gives the user a file and all below it.
func (u *User) Own(t *testing.T, path string) {
	t.Helper()
	run(t, "chown", "-R", "-h", fmt.Sprintf("%d:%d", u.uid, u.gid), path)
}

// ID returns the numbers of the user and of the user's group, with a colon between them.
func (u *User) ID() string { return fmt.Sprintf("%d:%d", u.uid, u.gid) }

// Programs gives the user the programs that make build has built, and returns the
// directory that they are in. Those that tests use as root may lie where no other user may
// look.
func (u *User) Programs(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(u.Home, "programs")
	must(t, os.MkdirAll(filepath.Join(dir, "lib"), 0o755)) //nolint:gosec // for the user
	for _, file := range []string{"sandbox", "sandbox-init", "sandbox-shim", "sandbox-logs", "lib/libchdb.so"} {
		Give(t, filepath.Join(programs.Dir(), file), filepath.Join(dir, file))
	}
	return dir
}

// Give makes a file another name, or a copy if there can be none, that a user may read.
func Give(t *testing.T, from, to string) {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	must(t, err)
	if os.Link(from, to) == nil { // the log engine is half a gigabyte
		return
	}
	content, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, content, 0o755)) //nolint:gosec // a program
}

func idOf(t *testing.T, which string) int {
	t.Helper()
	id, err := strconv.Atoi(strings.TrimSpace(run(t, "id", which, name)))
	must(t, err)
	return id
}

// restoreAfter restores a file, or its absence, when the test ends.
func restoreAfter(t *testing.T, file string) {
	t.Helper()
	was, err := os.ReadFile(file)
	absent := errors.Is(err, fs.ErrNotExist)
	if !absent {
		must(t, err)
	}
	t.Cleanup(func() {
		if absent {
			must(t, os.Remove(file))
			return
		}
		must(t, os.WriteFile(file, was, 0o644)) //nolint:gosec // as it was
	})
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // as on every Unix
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

// openTun gives /dev/net/tun the mode that udev gives it, until the test ends.
func openTun(t *testing.T) {
	t.Helper()
	const device = "/dev/net/tun"
	was, err := os.Stat(device)
	must(t, err)
	must(t, os.Chmod(device, 0o666)) //nolint:gosec // as on every Debian
	t.Cleanup(func() { must(t, os.Chmod(device, was.Mode().Perm())) })
}

// groups returns the directories of cgroups that the user is given.
func (u *User) groups() (dirs []string) {
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "freezer"} {
		dirs = append(dirs, fmt.Sprintf("/sys/fs/cgroup/%s/sandbox-%d", controller, u.uid))
	}
	return dirs
}

// delegate gives the user cgroups until the test ends.
func (u *User) delegate(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/fs/cgroup/memory/tasks"); err != nil {
		t.Fatal("the host has no cgroup v1, whose directories the test gives the user")
	}
	for _, dir := range u.groups() {
		must(t, os.MkdirAll(dir, 0o755))
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if all, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file)); err == nil {
				must(t, os.WriteFile(filepath.Join(dir, file), all, 0o644)) //nolint:gosec // as in every group
			}
		}
		must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chown(path, u.uid, u.gid))
		}))
	}
	t.Cleanup(func() { u.Withdraw(t) })
}

// Withdraw takes the cgroups back. They are empty.
func (u *User) Withdraw(t *testing.T) {
	t.Helper()
	for _, dir := range u.groups() {
		err := os.Remove(dir)
		for deadline := time.Now().Add(patience / 10); errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline); err = os.Remove(dir) {
			time.Sleep(10 * time.Millisecond) // a process that has ended leaves its group a little later
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			left, _ := filepath.Glob(dir + "/*")
			t.Errorf("a cgroup of the user is left: %v with %v", err, left)
		}
	}
}

// network makes the network namespace that is the user's host, and another one that is
// outside of it, until the test ends.
func (u *User) network(t *testing.T) {
	t.Helper()
	u.Host, u.Outside = namespace(t), namespace(t)
	run(t, "nsenter", u.Outside.Option(), "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(int(u.Host)))
	u.Outside.IP(t, "address add "+OutsideIP+"/24 dev eth0")
	u.Outside.IP(t, "link set eth0 up")
	for _, line := range []string{"link set lo up", "address add " + HostIP + "/24 dev eth0", "link set eth0 up", "route add default via " + OutsideIP} {
		u.Host.IP(t, line)
	}
}

// Netns is a network namespace: the number of the process that keeps it. A name would be
// a mount, and a link to this host's namespace would be a new address of this host: the
// suites that run beside this one would meet both.
type Netns int

// namespace makes a network namespace, until the test ends.
func namespace(t *testing.T) Netns {
	t.Helper()
	keeper := exec.Command("unshare", "--net", "sh", "-c", "echo made; exec sleep infinity")
	made, err := keeper.StdoutPipe()
	must(t, err)
	must(t, keeper.Start())
	t.Cleanup(func() { _, _ = keeper.Process.Kill(), keeper.Wait() })
	_, err = made.Read(make([]byte, 16))
	must(t, err)
	return Netns(keeper.Process.Pid)
}

// Option is the option of nsenter for the namespace.
func (n Netns) Option() string { return fmt.Sprintf("--net=/proc/%d/ns/net", n) }

// IP runs a command of ip in the namespace.
func (n Netns) IP(t *testing.T, line string) {
	t.Helper()
	run(t, "nsenter", append([]string{n.Option(), "ip"}, strings.Fields(line)...)...)
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %q: %v: %s", program, args, err, out)
	}
	return string(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
