package attack_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sandbox/core/options"
	"sandbox/test/boxes"
)

// Init's own descriptors have names, in /proc/self/fd, while it looks up a
// command and in its child until that runs. None of them may lead out of the
// box: not as a working directory, by a link to it, as a part of a program's
// path, nor as the file of accounts.
func TestNoWayOutByInitsDescriptors(t *testing.T) {
	t.Parallel()
	b := boxes.New(t)
	b.Sh(t, "for n in $(seq 0 24); do ln -s /proc/self/fd/$n /way$n; done")
	outside := filepath.Join(b.Root, "bin/busybox") // a name of the host's
	up := strings.Repeat("/..", 12)
	for fd := range 24 {
		for _, dir := range []string{fmt.Sprintf("/proc/self/fd/%d", fd), fmt.Sprintf("/way%d", fd), fmt.Sprintf("/proc/self/fd/%d%s", fd, up)} {
			_, s := b.Output(t, options.Exec{Cmd: []string{"/bin/pwd"}, WorkingDir: dir})
			if s.ExitCode != 126 {
				t.Errorf("a command runs in %s: %+v", dir, s)
			}
			_, s = b.Output(t, options.Exec{Cmd: []string{dir + up + outside, "true"}})
			if s.ExitCode == 0 {
				t.Errorf("a program ran by way of %s", dir)
			}
			for _, program := range []string{dir, dir + "/..", dir + "/cgroup.procs", dir + "/tasks"} {
				_, s = b.Output(t, options.Exec{Cmd: []string{program}})
				if s.ExitCode == 0 || strings.Contains(s.Message, "permission denied") || strings.Contains(s.Message, "is a directory") {
					t.Errorf("%s was looked at as a program: %+v", program, s)
				}
			}
		}
	}
	b.Lives(t)
}
