package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// upperDir is the name of the writable directory of a box, in the box's directory or on
// its disk.
const upperDir = "upper"

// stage is the directory where the shim mounts boxes' root file systems, in its
// own mount namespace, for libcontainer to take over. It can't lie in the home:
// a box's root user has to be able to reach it, and the home is closed to that
// user. /dev/pts exists on every host and everybody may enter it, so the shim
// need not make a directory on the host. The shim does not use it otherwise, so
// the mount on top of it hides nothing that is needed.
const stage = "/dev/pts"

func openStage() error {
	err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64m") // these flags do not apply to what is mounted in it
	return fault.Wrap(fault.Unsupported, err, "mount the directory in which boxes are put together on %s", stage)
}

// tree is the root file system of a box before its init has taken it over.
type tree struct {
	root      string        // the path where it is mounted, in the shim's own mount namespace
	mounts    int           // how many mounts are stacked on root
	held      *os.File      // keeps the file system, also when it is unmounted; nil before it is mounted
	unmounted chan struct{} // closed when unmountMeanwhile is done; nil if it was not called
}

// stagedTree returns the root file system of a box, which is not mounted yet.
func stagedTree(id string) tree { return tree{root: filepath.Join(stage, id)} }

// mount mounts the box's root file system: the layers, given lowest first, below
// the writable directory dir/upper. The layers are read-only, and their owners
// are mapped into the box's range of ids. The writable directory is not mapped
// but owned by ids of the box's range on disk, because the kernel mounts an
// overlay with an id-mapped one read-only without an error. diskGB is the size
// of the writable layer, 0 for no limit. passing says that the box is removed
// when it ends.
func (t *tree) mount(dir string, layers []string, ids *idMaps, diskGB int, passing bool) error {
	if err := makeDirs(dir, t.root); err != nil {
		return err
	}
	if diskGB != 0 { // the layers then cover it, so that the box does not see it
		if err := t.mountDisk(dir, diskGB); err != nil {
			return err
		}
		dir = t.root
	}
	upper, err := openDir(filepath.Join(dir, upperDir))
	if err != nil {
		return err
	}
	defer upper.Close()
	work, err := openDir(filepath.Join(dir, "work"))
	if err != nil {
		return err
	}
	defer work.Close()
	var lower []string
	for i := range layers {
		f, err := t.mapLayer(layers[len(layers)-1-i], ids)
		if err != nil {
			return err
		}
		defer f.Close()
		if i == 0 {
			if err := copyRoot(f, fdPath(upper), ids.base); err != nil {
				return err
			}
		}
		lower = append(lower, fdPath(f)) // overlayfs expects the topmost layer first
	}
	return t.overlay(lower, fdPath(upper), fdPath(work), passing)
}

// mapLayer mounts one layer, id-mapped and read-only, on the box's root, where
// later mounts cover it. It returns a descriptor of the mount, which the caller
// closes.
func (t *tree) mapLayer(path string, ids *idMaps) (*os.File, error) {
	f, err := t.openLayer(path)
	if err != nil {
		return nil, err
	}
	if err := t.placeLayer(f, ids); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// openLayer returns a mount of a layer that is not in place yet.
func (t *tree) openLayer(path string) (*os.File, error) {
	files := path
	if layer.IsDisk(path) {
		if err := t.mountLayerDisk(path); err != nil {
			return nil, err
		}
		files = filepath.Join(t.root, upperDir)
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, files, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if errors.Is(err, unix.ENOENT) {
		return nil, fault.New(fault.Image, "layer %s of the box's image is missing, perhaps after a power cut: pull or import the image again", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open layer %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// placeLayer mounts an opened layer, with its owners in the box's range of ids.
func (t *tree) placeLayer(f *os.File, ids *idMaps) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID}
	if !asUser {
		userns, err := ids.of(f)
		if err != nil {
			return err
		}
		attr.Attr_set, attr.Userns_fd = attr.Attr_set|unix.MOUNT_ATTR_IDMAP, uint64(userns.Fd())
	}
	err := unix.MountSetattr(int(f.Fd()), "", unix.AT_EMPTY_PATH, &attr)
	if errors.Is(err, unix.EINVAL) {
		return fault.New(fault.Unsupported, "%s is on %s, which has no id-mapped mounts: "+
			"copy it to another file system, or import it as an image with SANDBOX_HOME on ext4, xfs or btrfs", f.Name(), fileSystem(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("map the owners of layer %s: %w", f.Name(), err)
	}
	if err := unix.MoveMount(int(f.Fd()), "", unix.AT_FDCWD, t.root, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount layer %s: %w", f.Name(), err)
	}
	t.mounts++
	return nil
}

// overlay mounts the overlay file system of the layers and the writable
// directory on the box's root. With userxattr the marks of layers are in
// user.overlay.*, attributes which unpacking can set without privileges. The
// paths are those of descriptors, because the paths of a home with a long name
// would not fit into the one page that mount options may take.
// A box that is removed when it ends (passing) is mounted volatile, so that the
// kernel does not sync it: otherwise the end of the box would wait until all
// that it wrote is on disk, only to be removed.
func (t *tree) overlay(lower []string, upper, work string, passing bool) error {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,userxattr", strings.Join(lower, ":"), upper, work)
	if passing {
		options += ",volatile"
	}
	if err := unix.Mount("overlay", t.root, "overlay", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		if errors.Is(err, unix.EINVAL) {
			return noUpper(upper)
		}
		return fmt.Errorf("mount the box's root file system: %w", err)
	}
	t.mounts++
	var st unix.Statfs_t
	if err := unix.Statfs(t.root, &st); err != nil {
		return err
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return madeReadOnly(upper)
	}
	var err error
	t.held, err = openPath(t.root)
	return err
}

// noUpper returns the error for a home on a file system that can't hold a
// writable layer.
func noUpper(path string) error {
	return fault.New(fault.Unsupported, "the home is on %s, which can't be the writable layer of a box: "+
		"set SANDBOX_HOME to a directory on ext4, xfs or btrfs", fileSystem(path))
}

// madeReadOnly returns the error for a writable layer that the kernel made read-only.
// It does so where it can't write to the directory: on a file system that can hold
// a layer, because that is full or read-only.
func madeReadOnly(path string) error {
	switch fs := fileSystem(path); fs {
	case "ext4", "xfs", "btrfs", "tmpfs":
		return fault.New(fault.Storage, "the disk of the home took no writable layer of a box (%s): "+
			"it was full or is read-only, free some space or set SANDBOX_HOME to another disk", fs)
	}
	return noUpper(path)
}

// unmountMeanwhile unmounts the tree in the shim's mount namespace and does not wait
// for it, since that takes the kernel a grace period. The box keeps its mounts: its
// init has them in its own namespace by then.
func (t *tree) unmountMeanwhile() {
	t.unmounted = make(chan struct{})
	go func() {
		defer close(t.unmounted)
		t.unmount()
	}()
}

func (t *tree) unmount() {
	for ; t.mounts > 0; t.mounts-- {
		_ = unix.Unmount(t.root, unix.MNT_DETACH)
	}
	_ = os.Remove(t.root)
}

// view returns a path to the tree's file system, also when it is unmounted; "" if it
// never was mounted.
func (t *tree) view() string {
	if t.held == nil {
		return ""
	}
	return fdPath(t.held)
}

// close unmounts the tree, unless that was done, and lets go of its file system.
func (t *tree) close() {
	if t.unmounted == nil {
		t.unmount()
	} else {
		<-t.unmounted
	}
	if t.held != nil {
		_ = t.held.Close()
	}
}

func makeDirs(paths ...string) error {
	for _, p := range paths {
		if err := os.MkdirAll(p, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// copyRoot gives the writable directory, which the box sees as /, the mode and the
// owner of the topmost layer's root directory. That layer is mounted, so the owner is
// in the box's range of ids already; one that has no place there becomes the last id.
func copyRoot(top *os.File, upper string, base int) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(top.Fd()), &st); err != nil {
		return fmt.Errorf("layer %s: %w", top.Name(), err)
	}
	if err := os.Chmod(upper, os.FileMode(st.Mode&0o777)); err != nil {
		return err
	}
	if oneID != "" {
		return nil // it is root's, as all is
	}
	inRange := func(id uint32) int {
		if int(id) < base || int(id) >= base+idsPerBox {
			return base + idsPerBox - 1
		}
		return int(id)
	}
	return os.Chown(upper, inRange(st.Uid), inRange(st.Gid))
}

// openDir opens a directory, and makes it if it is missing. The caller closes it.
func openDir(path string) (*os.File, error) {
	if err := makeDirs(path); err != nil {
		return nil, err
	}
	return openPath(path)
}

func openPath(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func fdPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// fileSystem returns the name of the file system that path is on.
func fileSystem(path string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "an unknown file system"
	}
	if name, ok := fileSystems[st.Type]; ok {
		return name
	}
	return fmt.Sprintf("a file system of type %#x", st.Type)
}

var fileSystems = map[int64]string{
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.NFS_SUPER_MAGIC: "NFS", unix.TMPFS_MAGIC: "tmpfs",
	unix.FUSE_SUPER_MAGIC: "FUSE", unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs",
	unix.BTRFS_SUPER_MAGIC: "btrfs", unix.SMB2_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9p",
}
