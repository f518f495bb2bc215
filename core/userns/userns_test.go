package userns_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"sandbox/core/userns"
)

// child is set for the process that tells what it sees in a namespace.
const child = "USERNS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		fmt.Print(userns.Host(), userns.OneID())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags uintptr
		size  int
		want  string
	}{
		"the host's": {0, 0, "true false"},
		"one id":     {syscall.CLONE_NEWUSER, 1, "false true"},
		"a range":    {syscall.CLONE_NEWUSER, 65536, "false false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), child+"=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: tt.flags}
			if tt.flags != 0 {
				ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100_000, Size: tt.size}}
				cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = ids, ids
			}
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != tt.want {
				t.Errorf("got %q and %v, want %q", out, err, tt.want)
			}
		})
	}
}
