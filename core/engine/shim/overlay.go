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
)

// stage is where the shim mounts boxes' root file systems, in its own mount
// namespace, for libcontainer to take over. A box's root has to be able to go
// there, and the home is closed to it. This directory is on every host, open to
// all, and of no use to the shim: covering it hides nothing and makes no
// directory on the host.
const stage = "/dev/pts"

func openStage() error {
	err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64m") // what is in it counts, not this
	return fault.Wrap(fault.Unsupported, err, "mount the stage for boxes on %s", stage)
}

// tree is the root file system of a box before its init has taken it over.
type tree struct {
	root   string // where it is mounted, in the shim's own mount namespace
	mounts int    // how many mounts lie on root
}

// stagedTree is the root file system of a box, not mounted yet.
func stagedTree(id string) tree { return tree{root: filepath.Join(stage, id)} }

// mount mounts the box's root file system: the layers, lowest first,
// read-only and with their owners mapped into the box's range, below the
// writable directory upper. The writable directory belongs to the box's range on
// disk: an id-mapped one comes up silently read-only.
func (t *tree) mount(dir string, layers []string, base, diskGB int, passing bool) error {
	if err := makeDirs(dir, t.root); err != nil {
		return err
	}
	all := []idRange{{0, base, idsPerBox}}
	ids, err := userNamespace(all, all)
	if err != nil {
		return fault.Wrap(fault.Unsupported, err, "id-mapped layers need user namespaces")
	}
	defer ids.Close()
	if diskGB != 0 { // below the layers, out of the box's sight
		if err := t.mountDisk(dir, diskGB); err != nil {
			return err
		}
		dir = t.root
	}
	upper, err := openDir(filepath.Join(dir, "upper"))
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
		layer, err := t.mapLayer(layers[len(layers)-1-i], ids)
		if err != nil {
			return err
		}
		defer layer.Close()
		lower = append(lower, fdPath(layer)) // overlay wants the topmost first
	}
	if err := copyRoot(layers[len(layers)-1], fdPath(upper), base); err != nil {
		return err
	}
	return t.overlay(lower, fdPath(upper), fdPath(work), passing)
}

// mapLayer mounts one layer, id-mapped and read-only, on the box's root, where
// later mounts cover it, and gives a descriptor of it.
func (t *tree) mapLayer(layer string, ids *os.File) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, layer, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if errors.Is(err, unix.ENOENT) {
		return nil, fault.New(fault.Image, "%s, which the box stands on, has gone, with a power cut perhaps: pull or import its image again", layer)
	}
	if err != nil {
		return nil, fmt.Errorf("open layer %s: %w", layer, err)
	}
	f := os.NewFile(uintptr(fd), layer)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID, Userns_fd: uint64(ids.Fd())}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EINVAL) {
			return nil, fault.New(fault.Unsupported, "%s is on %s, which has no id-mapped mounts: "+
				"copy it to another file system, or import it as an image with SANDBOX_HOME on ext4, xfs or btrfs", layer, fileSystem(layer))
		}
		return nil, fmt.Errorf("map the owners of layer %s: %w", layer, err)
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, t.root, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("mount layer %s: %w", layer, err)
	}
	t.mounts++
	return f, nil
}

// overlay mounts the whole on the box's root. userxattr keeps the marks of
// layers in user.overlay.*, which unpacking can set without a right. Paths are
// of descriptors: those of a long home would not fit the one page that options
// have.
// What is passing is never written to disk for its own sake: else the end of
// the box waits until all that it wrote is there, to be removed.
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
		return noUpper(upper)
	}
	return nil
}

// noUpper is the failure of a home whose file system can't hold a writable layer.
func noUpper(path string) error {
	return fault.New(fault.Unsupported, "the home is on %s, which can't be the writable layer of a box: "+
		"set SANDBOX_HOME to a directory on ext4, xfs or btrfs", fileSystem(path))
}

// unmount takes the mounts away here; those of a running box are its own.
func (t *tree) unmount() {
	for ; t.mounts > 0; t.mounts-- {
		_ = unix.Unmount(t.root, unix.MNT_DETACH)
	}
	_ = os.Remove(t.root)
}

func makeDirs(paths ...string) error {
	for _, p := range paths {
		if err := os.MkdirAll(p, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// copyRoot gives the writable directory, which is what the box sees as /, the
// mode of the topmost layer's and an owner in the box's range.
func copyRoot(layer, upper string, base int) error {
	var st unix.Stat_t
	if err := unix.Stat(layer, &st); err != nil {
		return fmt.Errorf("layer %s: %w", layer, err)
	}
	if err := os.Chmod(upper, os.FileMode(st.Mode&0o777)); err != nil {
		return err
	}
	return os.Chown(upper, base+int(min(st.Uid, idsPerBox-1)), base+int(min(st.Gid, idsPerBox-1)))
}

// openDir opens a directory of the home, and makes it if it is missing.
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

// fileSystem names the file system that path is on.
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
