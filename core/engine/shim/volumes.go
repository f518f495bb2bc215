package shim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/hostpath"
	"sandbox/core/options"
)

// checkVolumes refuses host paths that no box may see. It is called before
// anything of the box is made.
func (k *keeper) checkVolumes(volumes []options.Volume) error {
	for _, v := range volumes {
		f, err := openVolume(k.home, v)
		if err != nil {
			return err
		}
		_ = f.Close()
	}
	return nil
}

// openVolume opens the host path of a volume. It refuses paths through which a
// box could break out: the home (with the sockets of the shim and of all boxes),
// the stage, and whatever lies in them or holds them. The caller closes the file.
func openVolume(home string, v options.Volume) (*os.File, error) {
	f, err := openHost("volume host_path", v.Within, v.HostPath)
	if err != nil {
		return nil, err
	}
	if err := checkVolume(f, home, v); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// openHost opens a path of the host that a caller has named in a member of a document, and
// that must lie in the directory within, unless that is "". The caller closes the file.
func openHost(member, within, path string) (*os.File, error) {
	f, err := hostpath.Open(within, path)
	switch {
	case errors.Is(err, hostpath.ErrOutside):
		return nil, fault.New(fault.PermissionDenied, "%s %s", member, hostpath.Explain(err, within, path))
	case fault.Short(err):
		return nil, fault.Disk(err, "open %s", member)
	case err != nil:
		return nil, fault.New(fault.InvalidArgument, "%s %s", member, hostpath.Explain(err, within, path))
	}
	return f, nil
}

func checkVolume(f *os.File, home string, v options.Volume) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.IsDir() && !st.Mode().IsRegular() {
		return fault.New(fault.InvalidArgument, "volume host_path %s is neither a directory nor a file", v.HostPath)
	}
	real, err := os.Readlink(fdPath(f)) // the path of what was opened, even if the name leads elsewhere by now
	if err != nil {
		return err
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return fault.Disk(err, "find the home")
	}
	for _, closed := range []string{home, stage} {
		if overlap(real, closed) {
			return fault.New(fault.InvalidArgument, "volume host_path %s", hostpath.Closed(v.HostPath, closed))
		}
	}
	return nil
}

// mountVolumes mounts the volumes into the box's tree, those that hold other
// volumes first. Nothing runs in the box yet, but it may have made symbolic links
// in an earlier life, so names are followed with the box's root as /.
func mountVolumes(home, root string, volumes []options.Volume, base int) error {
	if len(volumes) == 0 {
		return nil
	}
	r, err := openPath(root)
	if err != nil {
		return err
	}
	defer r.Close()
	volumes = slices.Clone(volumes)
	slices.SortStableFunc(volumes, func(a, b options.Volume) int {
		return cmp.Compare(strings.Count(path.Clean(a.GuestPath), "/"), strings.Count(path.Clean(b.GuestPath), "/"))
	})
	for _, v := range volumes {
		if err := mountVolume(home, guestRoot{r, root, base}, v); err != nil {
			return err
		}
	}
	return nil
}

func mountVolume(home string, root guestRoot, v options.Volume) error {
	host, err := openVolume(home, v)
	if err != nil {
		return err
	}
	defer host.Close()
	tree, err := mapVolume(host, v, root.base)
	if err != nil {
		return err
	}
	defer tree.Close()
	dir, err := isDir(int(host.Fd()))
	if err != nil {
		return err
	}
	at, err := root.mountPoint(path.Clean(v.GuestPath), dir)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if same, err := isDir(at); err != nil || same != dir {
		return fault.New(fault.InvalidArgument, "volume host_path %s and guest_path %s: one is a directory and the other is not; "+
			"name a guest_path of the same kind, or one that is not in the image", v.HostPath, v.GuestPath)
	}
	if err := unix.MoveMount(int(tree.Fd()), "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount volume %s: %w", v.GuestPath, err)
	}
	return nil
}

func isDir(fd int) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// mapVolume returns a clone of the mount of a host path, with all mounts below
// it, in which the host path's owner is mapped to the box's root. The caller
// closes it.
func mapVolume(host *os.File, v options.Volume, base int) (*os.File, error) {
	fd, err := unix.OpenTree(int(host.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("open volume %s: %w", v.HostPath, err)
	}
	tree := os.NewFile(uintptr(fd), v.HostPath)
	if err := setVolume(tree, v, base); err != nil {
		_ = tree.Close()
		return nil, err
	}
	return tree, nil
}

func setVolume(tree *os.File, v options.Volume, base int) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	if !asUser { // whose own id is that of the box's root
		ids, err := volumeIDs(tree, base)
		if err != nil {
			return err
		}
		defer ids.Close()
		attr.Attr_set, attr.Userns_fd = attr.Attr_set|unix.MOUNT_ATTR_IDMAP, uint64(ids.Fd())
	}
	if v.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	if errors.Is(err, unix.EINVAL) {
		return fault.New(fault.Unsupported, "volume %s is on %s, or a mount in it is on a file system, without id-mapped mounts: "+
			"share a directory on ext4, xfs, btrfs or tmpfs", v.HostPath, fileSystem(fdPath(tree)))
	}
	if err != nil {
		return fmt.Errorf("map the owner of volume %s: %w", v.HostPath, err)
	}
	return nil
}

// volumeIDs returns a user namespace with the id mappings of an opened volume. The caller
// closes it.
func volumeIDs(tree *os.File, base int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(tree.Fd()), &st); err != nil {
		return nil, err
	}
	uids, gids := volumeOwners(st.Uid, st.Gid, base)
	ids, err := userNamespace(uids, gids)
	return ids, fault.Wrap(fault.Unsupported, err, "volumes need user namespaces")
}

// volumeOwners returns the id mappings of a volume whose host path belongs to uid
// and gid. The box's root becomes that owner; to files of other owners the box
// has the access that everybody has. A host path that belongs to the host's
// root, who has access to everything in any case, is shared with the ids as they
// are: each user of the box is then the user with the same number.
func volumeOwners(uid, gid uint32, base int) (uids, gids []idRange) {
	if uid == 0 {
		all := []idRange{{0, base, idsPerBox}}
		return all, all
	}
	return ownerAsRoot(int(uid), base), ownerAsRoot(int(gid), base)
}

// ownerAsRoot returns the ranges that map an id of the host to the box's root, and
// the box's other ids to themselves. What these other users make in the volume
// belongs to ids of the box's range, which nobody has on the host. The owner may
// be such an id itself, of a directory that the box made: then it and the id of
// the box's root change places.
func ownerAsRoot(owner, base int) []idRange {
	end := base + idsPerBox
	if owner < base || owner >= end {
		return []idRange{{owner, base, 1}, {base + 1, base + 1, idsPerBox - 1}}
	}
	if owner == base {
		return []idRange{{base, base, idsPerBox}}
	}
	ranges := []idRange{
		{owner, base, 1}, {base, owner, 1},
		{base + 1, base + 1, owner - base - 1}, {owner + 1, owner + 1, end - owner - 1},
	}
	return slices.DeleteFunc(ranges, func(r idRange) bool { return r.size == 0 }) // empty where owner is next to an end of the range
}

// guestRoot is a box's root file system. Names in it are followed as the box
// would follow them.
type guestRoot struct {
	dir  *os.File
	path string
	base int
}

// open opens a name, following it with the box's root as /.
func (r guestRoot) open(name string) (int, error) {
	return hostpath.Openat2(int(r.dir.Fd()), name, unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// mountPoint returns a descriptor of a name in the box. It makes the directories
// and the file that are missing, owned by the box's root. The caller closes the
// descriptor.
func (r guestRoot) mountPoint(name string, dir bool) (int, error) {
	parts := strings.Split(strings.Trim(name, "/"), "/")
	at, err := r.open("/")
	for i := range parts {
		if err != nil {
			break
		}
		parent := at
		at, err = r.step(parent, strings.Join(parts[:i+1], "/"), dir || i < len(parts)-1)
		_ = unix.Close(parent)
	}
	var errno unix.Errno
	if errors.As(err, &errno) && slices.Contains([]unix.Errno{unix.ENOTDIR, unix.ELOOP, unix.EEXIST, unix.ENAMETOOLONG}, errno) {
		return -1, fault.New(fault.InvalidArgument, "volume guest_path %s: %v in the box", name, errno)
	}
	return at, err
}

// step opens a name, and makes it in the open directory parent if it is missing.
func (r guestRoot) step(parent int, name string, dir bool) (int, error) {
	fd, err := r.open(name)
	if errors.Is(err, unix.ENOENT) {
		if err := r.make(parent, name, dir); err != nil {
			return -1, err
		}
		fd, err = r.open(name)
	}
	if err != nil {
		return -1, err
	}
	if err := r.check(fd, name); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// make makes a mount point, a directory or an empty file. In another volume it
// can't make one and must not: the error says to make it there. The directory parent
// keeps its time, as what the box did in it is told by that.
func (r guestRoot) make(parent int, name string, dir bool) (err error) {
	base := path.Base(name)
	var was unix.Stat_t
	if err := unix.Fstat(parent, &was); err != nil {
		return err
	}
	if dir {
		err = unix.Mkdirat(parent, base, 0o755)
	} else {
		err = unix.Mknodat(parent, base, unix.S_IFREG|0o644, 0)
	}
	if errors.Is(err, unix.EOVERFLOW) || errors.Is(err, unix.EROFS) {
		return fault.New(fault.InvalidArgument, "volume guest_path /%s does not exist in the volume that it is in: create it there", name)
	}
	if err != nil {
		return err
	}
	if err := unix.Fchownat(parent, base, r.base, r.base, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return unix.UtimesNanoAt(parent, "", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, was.Mtim}, unix.AT_EMPTY_PATH)
}

// check refuses a name that leads to the box's root directory, or to where the
// box's own file systems are mounted.
func (r guestRoot) check(fd int, name string) error {
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return err
	}
	inBox := strings.TrimPrefix(strings.TrimPrefix(real, r.path), "/")
	if options.Reserved("/" + inBox) {
		return fault.New(fault.InvalidArgument, "volume guest_path /%s leads to /%s, which a volume may not cover: choose another path", name, inBox)
	}
	return nil
}
