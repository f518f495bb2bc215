package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/options"
)

// TestShortOfDescriptors looks at directories of callers without a descriptor to open them
// with, in a process of its own. What the caller named is not at fault.
func TestShortOfDescriptors(t *testing.T) {
	if os.Getenv("SHORT") == "" {
		t.Parallel()
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "SHORT=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "proc"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		left uint64 // descriptors
		open func() error
	}{
		"mount points": {1, func() error { return checkMountPoints(root) }},
		"rootfs_path":  {0, func() error { _, err := openRootfs(options.Box{RootfsPath: root}); return err }},
		"a volume":     {0, func() error { _, err := openVolume("/", options.Volume{HostPath: root}); return err }},
	} {
		next, err := unix.Dup(0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(next)
		var usual unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &usual); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next) + c.left, Max: usual.Max}); err != nil {
			t.Fatal(err)
		}
		err = c.open()
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &usual)
		if !fault.Is(err, fault.ResourceExhausted) {
			t.Errorf("%s: %v, want %v", name, err, fault.ResourceExhausted)
		}
	}
}
