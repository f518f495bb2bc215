package guest

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

// The shim mounts a box's new root file system in the directory NewRoot of a mount
// that init has put over /sys: that is a directory in every box, and is covered
// for as long as nothing runs in the box.
const (
	place   = "/sys"
	newRoot = place + "/" + wire.NewRoot
)

// settings returns the frame with the settings of the box. Before that, init moves
// into another root file system if the shim says so.
func (g *guest) settings(control *wire.Conn) (wire.Frame, error) {
	f, err := control.Recv()
	if err == nil && f.Type == wire.TypeRoot {
		if err := g.move(control, f); err != nil {
			return f, fmt.Errorf("move into the box's root file system: %w", err)
		}
		return receive(control, wire.TypeConfig)
	}
	return expected(f, wire.TypeConfig, err)
}

// move moves init, and with it the whole box, into the root file system that the
// shim mounts in the mount that came with f. /proc, /dev and /sys with all that is
// mounted in them stay the box's own.
func (g *guest) move(control *wire.Conn, f wire.Frame) error {
	defer f.CloseFDs()
	if len(f.FDs) != 1 {
		return wire.ErrProtocol
	}
	kept, err := copyMounts("/dev", "/proc", "/sys") // in the order of other boxes, which df shows
	defer closeCopies(kept)
	if err != nil {
		return err
	}
	if err := attach(f.FDs[0], place); err != nil {
		return err
	}
	if err := control.Send(wire.TypeReady, nil); err != nil {
		return err
	}
	if _, err := receive(control, wire.TypeRooted); err != nil {
		return err
	}
	if err := enter(kept); err != nil {
		return err
	}
	_ = unix.Close(g.pts)
	_ = g.null.Close()
	if err := g.openDevices(); err != nil {
		return err
	}
	return control.Send(wire.TypeReady, nil)
}

// enter makes what is mounted at newRoot the root of the box, with the kept mounts in
// it, and lets go of the old one.
func enter(kept map[string]int) error {
	// A copy: the kernel does not let go of the mount itself, which it has locked
	// because it comes from the shim's namespace. The copy has the same locked flags.
	tree, err := copyMounts(newRoot)
	defer closeCopies(tree)
	if err != nil {
		return err
	}
	// Nothing that the shim mounts or unmounts shows in it from here on.
	if err := unix.MountSetattr(tree[newRoot], "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
		return err
	}
	if err := attach(tree[newRoot], place); err != nil {
		return err
	}
	for path, fd := range kept {
		if err := attach(fd, place+path); err != nil {
			return err
		}
	}
	return pivot(place)
}

// pivot makes the mount at path the root of the box, and unmounts the old one.
func pivot(path string) error {
	old, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(old)
	if err := unix.Chdir(path); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Fchdir(old); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	return unix.Chdir("/")
}

// copyMounts returns copies of the mounts at paths, with all that is mounted in them,
// which are mounted nowhere yet.
func copyMounts(paths ...string) (map[string]int, error) {
	copies := map[string]int{}
	for _, path := range paths {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return copies, fmt.Errorf("copy the mounts at %s: %w", path, err)
		}
		copies[path] = fd
	}
	return copies, nil
}

func closeCopies(copies map[string]int) {
	for _, fd := range copies {
		_ = unix.Close(fd)
	}
}

func attach(mount int, path string) error {
	if err := unix.MoveMount(mount, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	return nil
}
