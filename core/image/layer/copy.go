package layer

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// copier copies a tree, of which nothing changes meanwhile, into another directory of
// the same host. It makes system calls with descriptors and single names alone, and
// follows no link, because the tree is a box's.
type copier struct {
	root   int                 // the directory in which the paths of links begin
	links  map[sameFile]string // the first name of a file with several ones
	shift  int                 // what is added to the ids of owners
	merges bool                // leaves out what overlayfs notes of one layer alone
}

// sameFile is a file of the host, whatever its names.
type sameFile struct{ dev, ino uint64 }

// copyTree copies what is in the directory from into the empty directory to, and the
// owner, mode, times and attributes of from itself. It keeps all that a layer has: owners,
// modes, times, hard links, holes, extended attributes, whiteouts. It leaves sockets out,
// which nobody listens on.
func copyTree(from, to int) error {
	c := copier{root: to, links: map[sameFile]string{}}
	return c.directory(from, to, ".")
}

// directory copies what is in an open directory, and then how the directory looks, since
// copying changes its time.
func (c *copier) directory(from, to int, path string) error {
	again, err := unix.Openat(from, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return copyFailed(path, err)
	}
	list := os.NewFile(uintptr(again), path) // has a position of its own
	defer list.Close()
	for {
		names, err := list.Readdirnames(namesAtOnce)
		for _, name := range names {
			if err := c.entry(from, to, name, path+"/"+name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return copyFailed(path, err)
		}
	}
	return copyFailed(path, c.dressDirectory(from, to))
}

func (c *copier) dressDirectory(from, to int) error {
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return err
	}
	return c.dress(from, to, &st)
}

// namesAtOnce bounds how many names of a directory are in memory, since a directory of a
// box may have millions.
const namesAtOnce = 1024

// entry copies one entry of a directory.
func (c *copier) entry(from, to int, name, path string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return copyFailed(path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return c.subdirectory(from, to, name, path)
	case unix.S_IFREG:
		return copyFailed(path, c.linked(to, name, path, &st, func() error { return c.file(from, to, name, &st) }))
	case unix.S_IFSOCK:
		return nil
	}
	return copyFailed(path, c.linked(to, name, path, &st, func() error { return c.node(from, to, name, &st) }))
}

func (c *copier) subdirectory(from, to int, name, path string) error {
	source, err := openDir(from, name)
	if err != nil {
		return copyFailed(path, err)
	}
	defer unix.Close(source)
	copied, err := makeDir(to, name)
	if err != nil {
		return copyFailed(path, err)
	}
	defer unix.Close(copied)
	return c.directory(source, copied, path)
}

// makeDir makes a directory and opens it.
func makeDir(to int, name string) (int, error) {
	if err := unix.Mkdirat(to, name, 0o700); err != nil {
		return -1, err
	}
	return openDir(to, name)
}

// linked gives a file another name if it is there already, and else calls make.
func (c *copier) linked(to int, name, path string, st *unix.Stat_t, make func() error) error {
	if st.Nlink == 1 {
		return make()
	}
	same := sameFile{st.Dev, st.Ino}
	if first, ok := c.links[same]; ok {
		err := unix.Linkat(c.root, first, to, name, 0)
		if errors.Is(err, unix.ENAMETOOLONG) { // the first name lies too deep: it becomes a file of its own
			return make()
		}
		return err
	}
	err := make()
	if err == nil {
		c.links[same] = path
	}
	return err
}

// node copies a file without content: a link, a pipe or a whiteout. Other devices
// can't be in the disk of a box.
func (c *copier) node(from, to int, name string, st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(from, name, target)
		if err != nil {
			return err
		}
		if err := unix.Symlinkat(string(target[:n]), to, name); err != nil {
			return err
		}
	case unix.S_IFIFO, unix.S_IFCHR:
		if !isWhiteout(st) && st.Mode&unix.S_IFMT != unix.S_IFIFO {
			return fault.New(fault.Engine, "a device")
		}
		if err := unix.Mknodat(to, name, st.Mode, 0); err != nil {
			return err
		}
		if err := unix.Fchmodat(to, name, st.Mode&0o7777, 0); err != nil {
			return err
		}
	default:
		return fault.New(fault.Engine, "a device")
	}
	if err := unix.Fchownat(to, name, int(st.Uid)+c.shift, int(st.Gid)+c.shift, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return setTimes(to, name, st)
}

func (c *copier) file(from, to int, name string, st *unix.Stat_t) error {
	source, err := unix.Openat(from, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	copied, err := unix.Openat(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(copied)
	if err := copyContent(source, copied, st.Size); err != nil {
		return err
	}
	return c.dress(source, copied, st)
}

// CopyContent copies size bytes of one file to another one, which is empty, and keeps
// holes. Where the file system can, both share the bytes on the disk. Errors: Storage.
func CopyContent(from, to *os.File, size int64) error {
	return fault.Disk(copyContent(int(from.Fd()), int(to.Fd()), size), "copy %s", from.Name())
}

func copyContent(from, to int, size int64) error {
	if size == 0 || unix.IoctlFileClone(to, from) == nil {
		return nil
	}
	for at := int64(0); at < size; {
		data, err := unix.Seek(from, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // the rest is a hole
			break
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(from, data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if err := copyRange(from, to, data, min(end, size)); err != nil {
			return err
		}
		at = end
	}
	return unix.Ftruncate(to, size)
}

// copyRange copies the bytes from at to end.
func copyRange(from, to int, at, end int64) error {
	for at < end {
		in, out := at, at
		n, err := unix.CopyFileRange(from, &in, to, &out, int(min(end-at, math.MaxInt32)), 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EXDEV): // a disk of a box is a file system of its own
			if n, err = sendRange(from, to, at, end); err != nil {
				return err
			}
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF // it became shorter
		}
		at += int64(max(n, 0))
	}
	return nil
}

// sendRange copies bytes from at on, at most up to end, to another file system. It returns
// how many.
func sendRange(from, to int, at, end int64) (int, error) {
	if _, err := unix.Seek(to, at, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := unix.Sendfile(to, from, &at, int(min(end-at, math.MaxInt32)))
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF // it became shorter
	}
	return n, err
}

// dress gives an open file or directory the owner, mode, times and extended
// attributes of another. The owner comes first, since a change of it drops the bits of
// set-user-id programs and file capabilities.
func (c *copier) dress(from, to int, st *unix.Stat_t) error {
	if err := unix.Fchown(to, int(st.Uid)+c.shift, int(st.Gid)+c.shift); err != nil {
		return err
	}
	if err := unix.Fchmod(to, st.Mode&0o7777); err != nil {
		return err
	}
	if err := c.attributes(from, to); err != nil {
		return err
	}
	return unix.UtimesNanoAt(to, "", []unix.Timespec{st.Atim, st.Mtim}, unix.AT_EMPTY_PATH)
}

func setTimes(dir int, name string, st *unix.Stat_t) error {
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// attributes copies the extended attributes of an open file.
func (c *copier) attributes(from, to int) error {
	n, err := unix.Flistxattr(from, nil)
	if err != nil || n == 0 {
		return err
	}
	names := make([]byte, n)
	if n, err = unix.Flistxattr(from, names); err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(names[:n]), "\x00") {
		if !copiedAttribute(name) || c.merges && strings.HasPrefix(name, overlayAttributes) {
			continue
		}
		if err := c.attribute(from, to, name); err != nil {
			return err
		}
	}
	return nil
}

// copiedAttribute reports whether an attribute belongs to the content of a layer: those
// that a box can set, and overlayfs's own marks. The marks of this package and the
// labels of the host's security modules do not.
func copiedAttribute(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, ownMarks) || name == "security.capability" || strings.HasPrefix(name, "system.posix_acl_")
}

func (c *copier) attribute(from, to int, name string) error {
	n, err := unix.Fgetxattr(from, name, nil)
	if err != nil {
		return err
	}
	value := make([]byte, n)
	if n, err = unix.Fgetxattr(from, name, value); err != nil {
		return err
	}
	shiftAttribute(name, value[:n], c.shift)
	return unix.Fsetxattr(to, name, value[:n], 0)
}

// copyFailed says of which file an error is.
func copyFailed(path string, err error) error {
	if err == nil || fault.Classified(err) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Engine, err, "copy %s: it changed meanwhile", quote(path))
	}
	return fault.Disk(err, "copy %s", quote(path))
}
