package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"sandbox/core/engine"
)

// The mounts that are tried here are detached: they are in no mount namespace,
// and are gone when their descriptor is closed.

func overlay(_ context.Context, c engine.Config) (string, *lack) {
	err := inScratch(c.Home, func(dir string) error {
		lower, err := unix.Open(filepath.Join(dir, "lower"), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open a layer: %w", err)
		}
		defer func() { _ = unix.Close(lower) }()
		return tryOverlay(dir, lower)
	})
	return tried(c, err, unix.ENODEV, "modprobe overlay")
}

func idMapped(_ context.Context, c engine.Config) (string, *lack) {
	err := inScratch(c.Home, func(dir string) error {
		lower, err := idMappedTree(filepath.Join(dir, "lower"))
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(lower) }()
		return tryOverlay(dir, lower)
	})
	return tried(c, err, unix.ENOSYS, "apt-get install linux-image-amd64 && reboot")
}

// tried words the result of a try in the home's file system; fix mends errno,
// any other failure is the file system's.
func tried(c engine.Config, err error, errno unix.Errno, fix string) (string, *lack) {
	if err == nil {
		return "tried in the home's file system", nil
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		fix = asRoot
	case !errors.Is(err, errno):
		fix = "SANDBOX_HOME=FOLDER on ext4, xfs or btrfs"
	}
	return "", &lack{fmt.Sprintf("tried at %s: %v", existing(c.Home), err), fix}
}

// inScratch runs do with a folder that has lower/, upper/ and work/, in the
// home's file system.
func inScratch(home string, do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp(existing(home), ".sandbox-doctor-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, sub := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
	}
	return do(dir)
}

// tryOverlay mounts a writable layer on lower and writes to it: an overlay can
// come up silently read-only.
func tryOverlay(dir string, lower int) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open overlayfs: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigSetFd(fs, "lowerdir+", lower); err != nil {
		return fmt.Errorf("give an overlay its layer: %w", err)
	}
	for key, name := range map[string]string{"upperdir": "upper", "workdir": "work"} {
		if err := unix.FsconfigSetString(fs, key, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("give an overlay its %s: %w", key, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("make an overlay: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount an overlay: %w", err)
	}
	defer func() { _ = unix.Close(mount) }()
	fd, err := unix.Openat(mount, "written", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("write to an overlay: %w", err)
	}
	return unix.Close(fd)
}

// firstID is where the tried range of ids begins on the host.
const firstID = 1 << 20

// idMappedTree gives a detached mount of dir whose files belong to the range.
func idMappedTree(dir string) (int, error) {
	ns, err := userNamespace()
	if err != nil {
		return -1, err
	}
	defer func() { _ = ns.Close() }()
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("copy a mount: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return -1, errors.Join(fmt.Errorf("map a mount's ids: %w", err), unix.Close(tree))
	}
	return tree, nil
}

// userNamespace makes a user namespace that maps a range of ids. A namespace
// comes from a process: a child that is stopped before its program's first
// instruction and killed as soon as its namespace is open.
func userNamespace() (*os.File, error) {
	runtime.LockOSThread() // a traced child belongs to the thread
	defer runtime.UnlockOSThread()
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: firstID, Size: 1 << 16}}
	child, err := os.StartProcess("/proc/self/exe", []string{"userns"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids, Ptrace: true, Pdeathsig: syscall.SIGKILL,
	}})
	if err != nil {
		return nil, fmt.Errorf("start a process in a user namespace: %w", err)
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", child.Pid))
	killed := child.Kill()
	_, waited := child.Wait()
	return ns, errors.Join(err, killed, waited)
}
