package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// roots is a shared mount. What is mounted in one of its directories appears in the
// box that has a copy of this directory, and the kernel locks it there: the box's
// init can't undo the flags of the mount.
const roots = stage + "/.roots"

func openRoots() error {
	err := os.Mkdir(roots, 0o755)
	if err == nil {
		err = unix.Mount("tmpfs", roots, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=1m")
	}
	if err == nil {
		err = unix.Mount("", roots, "", unix.MS_SHARED, "")
	}
	return fault.Wrap(fault.Unsupported, err, "mount the directory in which spares get a root file system on %s", roots)
}

// emptyLayer is the directory, in that of a spare, which is the layer of a spare
// without an image.
const emptyLayer = "empty"

// setAside is the directory, in that of a box, of the layers that its spare had.
const setAside = "spare"

// reroot gives a spare, whose directory is that of box b already, the root file
// system of b. Nothing but init has ever run in it. The old one is removed in the
// background. On failure the life is as good as lost.
func (l launcher) reroot(f *life, b record.Box) error {
	dir := record.Dir(l.home, b.ID)
	if err := putAside(dir); err != nil {
		return err
	}
	slot := filepath.Join(roots, f.slot)
	if err := makeOpenDirs(slot, filepath.Join(slot, wire.NewRoot)); err != nil {
		return err
	}
	tree := tree{root: filepath.Join(stage, f.slot)}
	err := l.offer(f, slot)
	if err == nil {
		err = l.mountAgain(f, &tree, b)
	}
	if err == nil {
		err = hand(f, tree.root, filepath.Join(slot, wire.NewRoot))
	}
	go func() { // unmounting waits for grace periods of the kernel
		tree.close()
		_ = unix.Unmount(filepath.Join(slot, wire.NewRoot), unix.MNT_DETACH)
		l.logLeft(errors.Join(os.RemoveAll(slot), os.RemoveAll(filepath.Join(dir, setAside))), f.slot)
	}()
	return err
}

func (l launcher) logLeft(err error, slot string) {
	if err != nil {
		l.log.Error("remove the root file system of a spare", "slot", slot, "error", err)
	}
}

// putAside moves the layers of a spare out of the way of the box's.
func putAside(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, setAside), 0o700); err != nil {
		return err
	}
	for _, name := range []string{upperDir, "work", emptyLayer} {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, setAside, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// makeOpenDirs makes directories that the root of a box may enter.
func makeOpenDirs(paths ...string) error {
	for _, path := range paths {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// offer sends init a copy of the directory slot of roots, which it puts into place
// while the shim mounts.
func (l launcher) offer(f *life, slot string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, slot, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// What init mounts there does not appear here.
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Propagation: unix.MS_SLAVE}); err != nil {
		return err
	}
	return f.control.Send(wire.TypeRoot, nil, fd)
}

// mountAgain mounts the root file system of b with its volumes, for an init that has
// all other mounts of the box. Its ids are those of the user namespace of that init.
func (l launcher) mountAgain(f *life, t *tree, b record.Box) error {
	userns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", f.init.PID))
	if err != nil {
		return err
	}
	ids := newIDMaps(b.UIDBase)
	ids.from[0] = userns
	defer ids.close()
	if err := l.mountRoot(t, b, ids); err != nil {
		return err
	}
	if err := makeMountPoints(t.root, b.UIDBase); err != nil {
		return err
	}
	return mountVolumes(l.home, t.root, b.Options.Volumes, b.UIDBase)
}

// hand mounts the root file system that is at from, with the volumes in it, where init
// expects it, and waits until init has moved into it.
func hand(f *life, from, to string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := awaitReady(f.control); err != nil {
		return err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return err
	}
	if err := f.control.Send(wire.TypeRooted, nil); err != nil {
		return err
	}
	return awaitReady(f.control)
}
