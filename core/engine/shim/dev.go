package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// devices are the names of the host's devices that a box sees. The box's cgroup
// allows no others.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// terminals is the id of the group that owns terminals on Debian and most other
// distributions.
const terminals = 5

// maxTerminals is the most terminals that a box can have open. The host has 4096
// in all, which a single box could use up without this limit.
const maxTerminals = 64

// mountDev makes the box's /dev, in the shim's mount namespace. libcontainer
// could do it too, but takes a hundred system calls for each of these mounts, as
// it must expect the box to change names meanwhile. Here plain paths are safe:
// nothing runs in the box yet, and checkMountPoints has found /dev to be a
// directory.
func mountDev(root string, base, memoryMiB int) error {
	dev := filepath.Join(root, "dev")
	owner := fmt.Sprintf("uid=%d,gid=%d", base, base)
	tty := base + terminals
	if oneID != "" {
		tty = base
	}
	for _, m := range []struct {
		name, fs, options string
		flags             uintptr
	}{
		{"", "tmpfs", "mode=755,size=1m," + owner, unix.MS_NOSUID | unix.MS_STRICTATIME},
		{"pts", "devpts", fmt.Sprintf("newinstance,max=%d,ptmxmode=0666,mode=0620,gid=%d", maxTerminals, tty), unix.MS_NOSUID | unix.MS_NOEXEC},
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

// makeDevice makes a device file of the box's own, with the number of the host's
// device. If the host's file itself were mounted into boxes, each would see in
// its times what the others do with it.
func makeDevice(host, box string, owner int) error {
	var st unix.Stat_t
	if err := unix.Stat(host, &st); err != nil {
		return err
	}
	if asUser { // who may make no devices
		return bindDevice(host, box)
	}
	if err := unix.Mknod(box, st.Mode, int(st.Rdev)); err != nil { //nolint:gosec // a number of a device
		return err
	}
	return errors.Join(os.Chmod(box, 0o666), os.Lchown(box, owner, owner)) //nolint:gosec // as on every Unix
}

// bindDevice mounts a device of the host where a box has it.
func bindDevice(host, box string) error {
	if err := unix.Mknod(box, unix.S_IFREG|0o666, 0); err != nil {
		return err
	}
	return unix.Mount(host, box, "", unix.MS_BIND, "")
}

// mountPoints are the directories of a box's root in which something is mounted in
// every box.
var mountPoints = []string{"proc", "dev", "sys"}

// checkMountPoints refuses a tree in which /proc, /dev or /sys exists and is not
// a directory, a symbolic link for instance: what is mounted there would land
// somewhere else.
func checkMountPoints(root string) error {
	dir, err := openPath(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range mountPoints {
		fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
		})
		switch {
		case err == nil:
			_ = unix.Close(fd)
		case errors.Is(err, unix.ENOENT):
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
			return fault.New(fault.InvalidArgument, "the root file system's /%s is not a directory: make it one, since the box's own /%[1]s is mounted there", name)
		default:
			return fault.Disk(err, "look at the root file system's /%s", name)
		}
	}
	return nil
}

// makeMountPoints makes the mount points that a box's root lacks, as libcontainer does
// for a box that is made from nothing: owned by the box's root.
func makeMountPoints(root string, base int) error {
	for _, name := range mountPoints {
		path := filepath.Join(root, name)
		if err := os.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := os.Lchown(path, base, base); err != nil {
			return err
		}
	}
	return nil
}
