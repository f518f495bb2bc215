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

func overlay(_ context.Context, c engine.Config) (string, *lack) {
	err := inScratch(c.Home, func(dir string) error { return tryOverlay(dir) })
	return tried(c, err, unix.ENODEV, "modprobe overlay")
}

func idMapped(_ context.Context, c engine.Config) (string, *lack) {
	err := inScratch(c.Home, func(dir string) error {
		if err := mapIDs(filepath.Join(dir, "lower")); err != nil {
			return err
		}
		return tryOverlay(dir)
	})
	return tried(c, err, unix.ENOSYS, "apt-get install linux-image-amd64 && reboot")
}

// tried returns the result of a try in the home's file system. When the try
// failed with errno, fix mends it; every other failure but a missing permission
// is blamed on the file system.
func tried(c engine.Config, err error, errno unix.Errno, fix string) (string, *lack) {
	if err == nil {
		return "tried in the home's file system", nil
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		fix = asRoot
	case !errors.Is(err, errno):
		fix = "SANDBOX_HOME=DIR on ext4, xfs or btrfs"
	}
	return "", &lack{fmt.Sprintf("tried at %s: %v", existing(c.Home), err), fix}
}

// inScratch calls do with a directory in the home's file system that has
// lower/, upper/, work/ and root/. do runs in a mount namespace of its own, so
// that its mounts are gone when it ends.
func inScratch(home string, do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp(existing(home), ".sandbox-doctor-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, sub := range []string{"lower", "upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
	}
	done := make(chan error)
	go onThrownAwayThread(func() { done <- withOwnMounts(func() error { return do(dir) }) })
	return <-done
}

// onThrownAwayThread calls do on a thread that ends together with the
// goroutine. The first thread of a process can't end: a goroutine that runs on
// it blocks it, while another goroutine does the work on another thread.
func onThrownAwayThread(do func()) {
	runtime.LockOSThread() // never unlocked when do runs here, so that the thread ends with the goroutine
	if unix.Gettid() != unix.Getpid() {
		do()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() {
		defer close(done)
		onThrownAwayThread(do)
	}()
	<-done
}

// withOwnMounts moves this thread into a mount namespace of its own, for good,
// and calls do there.
func withOwnMounts(do func() error) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	return do()
}

// tryOverlay mounts a writable layer over lower/ and writes to it. The write is
// needed because an overlay may be mounted read-only without an error.
func tryOverlay(dir string) error {
	root := filepath.Join(dir, "root")
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work,userxattr", dir, dir, dir)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		return fmt.Errorf("mount an overlay: %w", err)
	}
	if err := os.WriteFile(filepath.Join(root, "written"), nil, 0o600); err != nil {
		return fmt.Errorf("write to an overlay: %w", err)
	}
	return nil
}

// firstID is the first id on the host of the range that is tried.
const firstID = 1 << 20

// mapIDs mounts dir on itself, id-mapped, so that its files belong to the tried
// range of ids.
func mapIDs(dir string) error {
	ns, err := userNamespace()
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("copy a mount: %w", err)
	}
	defer func() { _ = unix.Close(tree) }()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("map a mount's ids: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount a layer: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	if st.Uid != firstID {
		return fmt.Errorf("a mapped owner is %d and should be %d", st.Uid, firstID)
	}
	return nil
}

// userNamespace returns a new user namespace that maps a range of ids. It takes
// a process to make one: a child, which is stopped before the first instruction
// of its program and is killed as soon as its namespace is open.
func userNamespace() (*os.File, error) {
	runtime.LockOSThread() // a traced child belongs to the thread that started it
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
