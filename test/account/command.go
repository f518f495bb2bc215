package account

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sandbox/test/programs"
)

// Path is the PATH of the user.
const Path = "/usr/bin:/bin:/usr/sbin:/sbin"

// Command returns a command of the user in the network namespace.
func (u *User) Command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	args = append([]string{u.Host.Option(), "--", "setpriv", "--reuid", name, "--regid", strconv.Itoa(u.gid), "--init-groups"}, args...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	if unified() { // the user can't get into the group from outside
		_, login := u.unifiedGroup()
		cmd = exec.CommandContext(ctx, "sh", append([]string{"-c", `[ -d "$0" ] && echo $$ >"$0/cgroup.procs"; exec nsenter "$@"`, login}, args...)...)
	}
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + u.Home, "TMPDIR=" + u.Home, "PATH=" + Path, "SANDBOX_HELPER_DIR=" + programs.Dir()}
	cmd.WaitDelay = time.Second
	return cmd
}

// processes returns the processes of the user, by PID: what they run.
func (u *User) processes() map[int]string {
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

// nothingLeft waits until no process of the user is left. Errors: one is, or a group below
// those that the user was given.
func (u *User) nothingLeft() error {
	if u.uid == 0 { // there is no user
		return nil
	}
	for deadline := time.Now().Add(patience); len(u.processes()) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			left := u.processes()
			for pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return fmt.Errorf("processes of the user are left: %v", left)
		}
	}
	if unified() {
		return nil // what is left shows when the groups are withdrawn
	}
	for _, dir := range u.groups() {
		if left, _ := filepath.Glob(dir + "/*/cgroup.procs"); len(left) > 0 {
			return fmt.Errorf("groups are left: %v", left)
		}
	}
	return nil
}
