package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// devices are the host's that a box sees. The cgroup lets no others through.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// terminals is the group that owns terminals, in Debian and most others.
const terminals = 5

// maxTerminals is how many terminals a box has open at most. The host has 4096,
// of which one box would take all.
const maxTerminals = 64

// mountDev makes the box's /dev, in the shim's mount namespace. libcontainer
// could: it takes a hundred system calls for each of these mounts, as it must
// expect the box to be at work meanwhile. Nothing runs in the box yet, and
// checkMountPoints has seen that /dev is a directory, so that names can be used.
func mountDev(root string, base, memoryMiB int) error {
	dev := filepath.Join(root, "dev")
	owner := fmt.Sprintf("uid=%d,gid=%d", base, base)
	for _, m := range []struct {
		name, fs, options string
		flags             uintptr
	}{
		{"", "tmpfs", "mode=755,size=1m," + owner, unix.MS_NOSUID | unix.MS_STRICTATIME},
		{"pts", "devpts", fmt.Sprintf("newinstance,max=%d,ptmxmode=0666,mode=0620,gid=%d", maxTerminals, base+terminals), unix.MS_NOSUID | unix.MS_NOEXEC},
		{"shm", "tmpfs", fmt.Sprintf("mode=1777,size=%dm,%s", (memoryMiB+1)/2, owner), unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV},
	} {
		path := filepath.Join(dev, m.name)
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := unix.Mount(m.fs, path, m.fs, m.flags, m.options); err != nil {
			return fmt.Errorf("mount /dev/%s: %w", m.name, err)
		}
	}
	for _, name := range devices {
		if err := makeDevice(filepath.Join("/dev", name), filepath.Join(dev, name), base); err != nil {
			return fmt.Errorf("make /dev/%s: %w", name, err)
		}
	}
	return nil
}

// makeDevice makes a device of the box's own, by the number of the host's. The
// host's file itself, mounted here, would show what boxes do to its times.
func makeDevice(host, box string, owner int) error {
	var st unix.Stat_t
	if err := unix.Stat(host, &st); err != nil {
		return err
	}
	if err := unix.Mknod(box, st.Mode, int(st.Rdev)); err != nil { //nolint:gosec // a number of a device
		return err
	}
	return errors.Join(os.Chmod(box, 0o666), os.Lchown(box, owner, owner)) //nolint:gosec // as on every Unix
}

// checkMountPoints refuses a tree in which a name that the box's own file
// systems are mounted on leads somewhere else.
func checkMountPoints(root string) error {
	dir, err := openPath(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range []string{"proc", "dev", "sys"} {
		fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
		})
		switch {
		case err == nil:
			_ = unix.Close(fd)
		case !errors.Is(err, unix.ENOENT):
			return fault.New(fault.InvalidArgument, "the root file system's /%s is not a directory: the box needs it to mount its own", name)
		}
	}
	return nil
}
