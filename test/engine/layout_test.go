package engine_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// layoutTests are what depends on the layout of cgroups. mk/vm.mk runs all tests
// of this package where cgroup2 has every controller.
const layoutTests = "^(TestEngine|TestInitKilled|TestInitOfAPausedBoxKilled|TestMemoryLimit|TestPauseOutlivesTheShim|TestPauseReclaims|TestPauseStopsClocks|TestProcessLimit|TestShimGroup)$"

// TestPureV1 runs those tests where cgroup2 is not mounted, so that execs are
// kept together by the v1 freezer. This program is started again in a mount
// namespace of its own, which its programs inherit.
func TestPureV1(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		t.Skip("this host has cgroup2 alone, so its controllers can't be v1's; the other tests show that it works")
	}
	again := exec.Command(os.Args[0], "-test.run", layoutTests, "-test.timeout", "20m")
	again.Env = append(os.Environ(), "PURE_V1=1")
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("without cgroup2: %v\n%s", err, out)
	}
}

// leaveV2 takes cgroup2 away from this process's mount namespace.
func leaveV2() error {
	const unified = "/sys/fs/cgroup/unified"
	if err := unix.Unmount(unified, 0); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("unmount %s: %w", unified, err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(unified, &st); err == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%s is still cgroup2", unified)
	}
	if _, err := os.Stat("/sys/fs/cgroup/freezer/tasks"); err != nil {
		return fmt.Errorf("needs the v1 freezer: %w", err)
	}
	return nil
}
