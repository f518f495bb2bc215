package rootless_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandbox/test/programs"
)

// command returns a command of the user in the network namespace.
func (u *account) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{u.host.net(), "--", "setpriv",
		"--reuid", name, "--regid", strconv.Itoa(u.gid), "--init-groups"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + u.home, "TMPDIR=" + u.home, "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "SANDBOX_HELPER_DIR=" + programs.Dir()}
	cmd.WaitDelay = time.Second
	return cmd
}

// sandbox runs the command line as the user.
func (u *account) sandbox(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := u.command(ctx, u.home, append([]string{filepath.Join(programs.Dir(), "sandbox"), "--local"}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	return out.String(), complaint.String(), err
}

// mustSandbox is sandbox that has to succeed. It returns the standard output.
func (u *account) mustSandbox(t *testing.T, args ...string) string {
	t.Helper()
	out, complaint, err := u.sandbox(t, args...)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(u.home, ".sandbox/engine/shim.log"))
		t.Fatalf("sandbox %q: %v: %s\n%s", args, err, complaint, log)
	}
	return out
}

// request asks a server for its page, and prints what comes in 5 seconds. The wget of
// Debian's static busybox does not run in a box.
const request = `printf 'GET / HTTP/1.0\r\n\r\n' | timeout 5 nc -w 3 "$0" "$1"`

// fromHost returns what a server answers the user in the network namespace.
func (u *account) fromHost(t *testing.T, server string) string {
	t.Helper()
	host, port, _ := strings.Cut(server, ":")
	out, _ := u.command(t.Context(), u.home, "busybox", "sh", "-c", request, host, port).Output() // it fails where nobody listens
	return string(out)
}

// fromBox returns what a server answers a program in the box "b".
func (u *account) fromBox(t *testing.T, server string) string {
	t.Helper()
	host, port, _ := strings.Cut(server, ":")
	out, _, _ := u.sandbox(t, "exec", "b", "--", "sh", "-c", request, host, port) // it fails where it may not connect
	return out
}

// serve has a server answer with a text at a port of all addresses of a namespace, and
// returns a function that ends it.
func (u *account) serve(t *testing.T, in netns, port, text string) (end func()) {
	t.Helper()
	dir := filepath.Join(u.home, "www"+port)
	must(t, os.Mkdir(dir, 0o755))                                                     //nolint:gosec // for the user
	must(t, os.WriteFile(filepath.Join(dir, "index.html"), []byte(text+"\n"), 0o644)) //nolint:gosec // for the user
	cmd := exec.Command("nsenter", in.net(), "busybox", "httpd", "-f", "-p", port, "-h", dir)
	must(t, cmd.Start())
	return func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
}

// processes returns the processes of the user, by PID: what they run.
func (u *account) processes() map[int]string {
	all := map[int]string{}
	entries, _ := os.ReadDir("/proc") // it can always be read
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		st, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil || !strings.Contains(string(st), fmt.Sprintf("\nUid:\t%d\t", u.uid)) || strings.Contains(string(st), "\nState:\tZ") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		all[pid] = strings.ReplaceAll(string(line), "\x00", " ")
	}
	return all
}

// wantNothingLeft waits until no process of the user is left, and wants no group below
// those that the user was given.
func (u *account) wantNothingLeft(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(u.processes()) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("processes of the user are left: %v", u.processes())
			for pid := range u.processes() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return
		}
	}
	for _, dir := range u.groups() {
		left, _ := filepath.Glob(dir + "/*/cgroup.procs")
		if len(left) > 0 {
			t.Errorf("groups are left: %v", left)
		}
	}
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
