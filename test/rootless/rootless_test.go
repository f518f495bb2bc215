// Package rootless_test makes boxes as a user who is not root, which the tests make.
package rootless_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandbox/test/account"
	"sandbox/test/boxes"
	"sandbox/test/rootfs"
)

// patience bounds each command.
const patience = 2 * time.Minute

// user is the one, who has a home of boxes.
type user struct {
	*account.User
	path string // where it finds programs
}

func newUser(t *testing.T) user {
	t.Helper()
	return user{account.New(t), account.Path}
}

// without keeps a program from the user.
func (u *user) without(t *testing.T, program string) {
	t.Helper()
	bin := filepath.Join(u.Home, "bin")
	must(t, os.Mkdir(bin, 0o755)) //nolint:gosec // for the user
	for _, dir := range filepath.SplitList(u.path) {
		programs, err := os.ReadDir(dir)
		must(t, err)
		for _, p := range programs {
			if p.Name() != program {
				_ = os.Symlink(filepath.Join(dir, p.Name()), filepath.Join(bin, p.Name())) // the first of a name counts
			}
		}
	}
	u.path = bin
}

// busybox makes a root file system of the user's.
func (u user) busybox(t *testing.T) string {
	t.Helper()
	root := filepath.Join(u.Home, "rootfs")
	run(t, "cp", "-r", rootfs.Busybox(t), root)
	must(t, u.Own(root))
	return root
}

// TestBox makes a box, runs commands in it, and removes it.
func TestBox(t *testing.T) {
	u := newUser(t)
	root := u.busybox(t)
	u.mustSandbox(t, "create", "--name", "b", "--network", "None", "-m", "64", "--rootfs", root)
	if out := u.mustSandbox(t, "exec", "b", "--", "sh", "-c", "id -u; touch /made; chown 33:33 /made; stat -c %u /made"); out != "0\n33\n" {
		t.Errorf("got %q", out)
	}
	_, _, err := u.sandbox(t, "exec", "b", "--", "sh", "-c", "x=x; while :; do x=$x$x; done")
	if err == nil {
		t.Error("a command used more memory than its box has")
	}
	u.mustSandbox(t, "rm", "-f", "b")
	boxes.Await(t, "the box to leave nothing", func() bool { // nor a spare, which ends with the shim
		left, err := filepath.Glob(filepath.Join(u.Home, ".sandbox/boxes/*"))
		return err == nil && len(left) == 0
	})
}

// TestUnenforced wants a box that allows it to run without cgroups, with limits that init
// watches over, and its record to say so.
func TestUnenforced(t *testing.T) {
	u := newUser(t)
	root := u.busybox(t)
	must(t, u.Withdraw())
	create := []string{"create", "--name", "b", "--network", "None", "-m", "64", "--rootfs", root}
	if _, complaint, err := u.sandbox(t, create...); err == nil || !strings.Contains(complaint, "allow_unenforced_limits") {
		t.Errorf("it was not asked for, and is made: %s", complaint)
	}
	u.mustSandbox(t, append(create, "--allow-unenforced-limits")...)
	defer u.mustSandbox(t, "rm", "-f", "b")
	if info := u.mustSandbox(t, "-o", "json", "info", "b"); !strings.Contains(info, `"unenforced_limits": true`) {
		t.Errorf("the record does not say it: %s", info)
	}
	if _, complaint, err := u.sandbox(t, "exec", "--timeout", "30", "b", "--", "sh", "-c", "x=x; while :; do x=$x$x; done"); err == nil || !strings.Contains(complaint, "memory") {
		t.Errorf("memory of one process: %v: %s", err, complaint)
	}
	several := "fill() { x=$(head -c 25165824 /dev/zero | tr '\\0' x); }; (fill; :) || exit 4\n" + // one alone may
		"for i in 1 2 3; do { (fill; sleep 60; :) || touch /tmp/killed; } & done; until [ -e /tmp/killed ]; do sleep 0.1; done; exit 3"
	if _, complaint, err := u.sandbox(t, "exec", "--timeout", "60", "b", "--", "sh", "-c", several); err == nil || err.Error() != "exit status 3" {
		t.Errorf("memory of several: %v, want one of them killed: %s", err, complaint)
	}
	_, _, err := u.sandbox(t, "exec", "--timeout", "1", "b", "--", "sh", "-c", "setsid sleep 61 & sleep 62 & wait")
	if out := u.mustSandbox(t, "exec", "b", "--", "ps"); err == nil || strings.Contains(out, "sleep 61") || strings.Contains(out, "sleep 62") {
		t.Errorf("a command outlives its time: %v: %s", err, out)
	}
	if out := u.mustSandbox(t, "exec", "b", "--", "sh", "-c", "sleep 1; grep 'Max processes' /proc/self/limits"); strings.Count(out, "4096") != 2 {
		t.Errorf("the processes of a command are not bounded: %s", out)
	}
	if _, complaint, err := u.sandbox(t, "pause", "b"); err == nil || !strings.Contains(complaint, "without cgroups can't stand still") {
		t.Errorf("it stands still: %v: %s", err, complaint)
	}
	u.mustSandbox(t, "exec", "b", "--", "true")
}

// laterIP is an address that the host gets while a box runs.
const laterIP = "198.51.100.3"

// TestNetwork wants a box to reach what is outside, to be reached by its published
// ports, and to reach no address of the host, neither those that it has nor those that
// it gets later. slirp4netns connects it where there is no pasta.
func TestNetwork(t *testing.T) {
	t.Run("pasta", func(t *testing.T) { network(t, newUser(t)) })
	t.Run("slirp4netns", func(t *testing.T) {
		u := newUser(t)
		u.without(t, "pasta")
		if out := u.mustSandbox(t, "doctor"); !strings.Contains(out, "/slirp4netns (slirp4netns version ") {
			t.Errorf("doctor finds another program: %s", out)
		}
		network(t, u)
	})
}

func network(t *testing.T, u user) {
	t.Helper()
	root := u.busybox(t)
	defer u.serve(t, u.Outside, "8083", "outside")()
	defer u.serve(t, u.Host, "8082", "the host")()
	u.mustSandbox(t, "create", "--name", "b", "-p", "127.0.0.1:8081:80", "--rootfs", root)
	defer u.mustSandbox(t, "rm", "-f", "b")
	boxes.Await(t, "an answer from outside", func() bool { return strings.Contains(u.fromBox(t, account.OutsideIP+":8083"), "outside") })
	boxes.Await(t, "the server of the host", func() bool { return strings.Contains(u.fromHost(t, account.HostIP+":8082"), "the host") })
	u.mustSandbox(t, "exec", "b", "--", "sh", "-c", "mkdir /www && echo inside >/www/index.html && httpd -p 80 -h /www")
	if out := u.fromHost(t, "127.0.0.1:8081"); !strings.Contains(out, "inside") {
		t.Errorf("through the port came %q", out)
	}
	for _, address := range []string{"127.0.0.1", account.HostIP, laterIP} {
		if address == laterIP {
			must(t, u.Host.IP("address add "+laterIP+"/24 dev eth0"))
			boxes.Await(t, "the box to be kept from a new address of the host", func() bool {
				return !strings.Contains(u.fromBox(t, laterIP+":8082"), "the host")
			})
		}
		if out := u.fromHost(t, address+":8082"); !strings.Contains(out, "the host") {
			t.Errorf("%s: the host itself reads %q", address, out)
		}
		if out := u.fromBox(t, address+":8082"); strings.Contains(out, "the host") {
			t.Errorf("the box reads %q at %s of the host", out, address)
		}
	}
}

// TestRefused wants a user who was given no cgroups to be told how to get them.
func TestRefused(t *testing.T) {
	u := newUser(t)
	root := u.busybox(t)
	must(t, u.Withdraw())
	if _, complaint, err := u.sandbox(t, "create", "--network", "None", "--rootfs", root); err == nil || !strings.Contains(complaint, "cgroup") {
		t.Errorf("got %v: %s", err, complaint)
	}
}
