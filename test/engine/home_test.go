package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandbox/core/engine"
	"sandbox/core/fault"
	"sandbox/test/boxes"
	"sandbox/test/programs"
	"sandbox/test/rootfs"
)

// mounted returns a directory with a file system on it, until the test ends.
func mounted(t *testing.T, fs, data string, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(fs, dir, fs, flags, data); err != nil {
		t.Fatal("needs root to mount: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// openErr opens a home and makes a box in it: either may fail.
func openErr(t *testing.T, home string) error {
	t.Helper()
	root := rootfs.Busybox(t)
	e, err := engine.Open(engine.Config{Home: home, HelperDir: programs.Dir()})
	if err != nil {
		return err
	}
	defer e.Close()
	id := boxes.NextID(home)
	_, err = boxes.Create(t.Context(), e, id, root)
	if err == nil {
		return e.Remove(t.Context(), id, true)
	}
	if recs, listErr := e.List(t.Context()); listErr != nil || len(recs) != 0 {
		t.Errorf("left: %v, %v", recs, listErr)
	}
	return err
}

// A home that can't be one is refused with what is wrong with it.
func TestHomes(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, tt := range map[string]struct {
		home func(t *testing.T) string
		want fault.Kind // Internal for none
		says string
	}{
		"a file":    {file, fault.Storage, "home"},
		"in a file": {func(t *testing.T) string { return filepath.Join(file(t), "home") }, fault.Storage, "home"},
		"read-only": {func(t *testing.T) string { return mounted(t, "tmpfs", "", unix.MS_RDONLY) }, fault.Storage, "SANDBOX_HOME"},
		"full": {func(t *testing.T) string {
			dir := mounted(t, "tmpfs", "size=16k", 0)
			_ = os.WriteFile(filepath.Join(dir, "full"), make([]byte, 64<<10), 0o600)
			return dir
		}, fault.Storage, "SANDBOX_HOME"},
		"full of names": {func(t *testing.T) string { return mounted(t, "tmpfs", "nr_inodes=6", 0) }, fault.Storage, "SANDBOX_HOME"},
		"on overlayfs": {func(t *testing.T) string {
			disk := mounted(t, "tmpfs", "", 0)
			for _, d := range []string{"lower", "upper", "work"} {
				if err := os.Mkdir(filepath.Join(disk, d), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			return mounted(t, "overlay", "lowerdir="+disk+"/lower,upperdir="+disk+"/upper,workdir="+disk+"/work", 0)
		}, fault.Unsupported, "SANDBOX_HOME"},
		"on tmpfs":  {func(t *testing.T) string { return mounted(t, "tmpfs", "", 0) }, fault.Internal, ""},
		"long name": {func(t *testing.T) string { return filepath.Join(t.TempDir(), strings.Repeat("long-", 40)) }, fault.Internal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := openErr(t, tt.home(t))
			if tt.want == fault.Internal {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !fault.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.says)
			}
		})
	}
}

// refused is a process that says what a home answers it, as TestHomesOfOthers
// starts it: as another user, or without cgroups.
func refused(home string) {
	e, err := engine.Open(engine.Config{Home: home, HelperDir: programs.Dir()})
	if err == nil {
		_, err = boxes.Create(context.Background(), e, boxes.NextID(home), os.Getenv("REFUSED_ROOT"))
	}
	if err != nil {
		_, _ = os.Stdout.WriteString(fault.Of(err).Kind.String() + ": " + err.Error())
	}
	os.Exit(0)
}

// Without root and what it gives a user, or on a host without cgroups, there are no boxes: it is said so.
func TestHostsWithout(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		attr syscall.SysProcAttr
		pre  string
		says []string
	}{
		"root":    {syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "", []string{"unsupported", "sudo "}},
		"cgroups": {syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}, "umount -R /sys/fs/cgroup && ", []string{"unsupported", "cgroup"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Open to nobody, below the temporary directories, which are not.
			home, err := os.MkdirTemp("/tmp", "home-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(home) })
			if err := os.Chmod(home, 0o777); err != nil { //nolint:gosec // for nobody
				t.Fatal(err)
			}
			program := filepath.Join(home, "program")
			if err := exec.Command("cp", os.Args[0], program).Run(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", tt.pre+"exec "+program)
			cmd.SysProcAttr = &tt.attr
			cmd.Env = append(os.Environ(), "REFUSED_HOME="+home+"/home", "REFUSED_ROOT="+rootfs.Busybox(t))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatal(err, string(out))
			}
			for _, word := range tt.says {
				if !strings.Contains(string(out), word) {
					t.Errorf("says %q, without %q", out, word)
				}
			}
		})
	}
}
