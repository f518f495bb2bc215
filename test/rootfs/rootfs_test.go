package rootfs_test

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandbox/test/rootfs"
)

func TestBusyboxRunsAlone(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "ls /bin/sh && id -un && cat /etc/hostname")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: rootfs.Busybox(t)} // needs root
	out, err := cmd.CombinedOutput()
	if want := "/bin/sh\nroot\nbusybox\n"; err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
		t.Fatalf("needs root: %v\n%s", err, out)
	}
}
