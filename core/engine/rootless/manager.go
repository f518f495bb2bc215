package rootless

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A session of systemd is in a cgroup of root's. The user's own cgroups are those of the
// user manager of systemd, and only that manager can move a process from the session there.

// runtimeVariable names the directory in which the user manager listens.
const runtimeVariable = "XDG_RUNTIME_DIR"

// InManager returns a command line that runs args in a cgroup of the user manager of
// systemd, and the environment for that. It returns nil where there is no such manager.
func InManager(args ...string) (argv, env []string) {
	dir := os.Getenv(runtimeVariable)
	if dir == "" {
		dir = fmt.Sprintf("/run/user/%d", os.Getuid())
	}
	program, err := exec.LookPath("systemd-run")
	if err != nil || !exists(filepath.Join(dir, "systemd", "private")) {
		return nil, nil
	}
	env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, runtimeVariable+"=") })
	return append([]string{program, "--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--"}, args...),
		append(env, runtimeVariable+"="+dir)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
