// Package delta keeps what a box has changed of its image, where the box's disk goes with
// its process 1: a pod writes it into a volume when it ends, and the next pod of the box
// puts it back before anything runs.
//
// A delta is a tar, compressed with zstd, whose checksum tells a damaged one. It has the
// files that differ from the image, with owners, modes, times, hard links, holes and
// extended attributes, and an entry for each name of the image that the box has removed.
// What is mounted in the box is left out, and so are sockets.
//
// Process 1 alone works on the files, while nothing else runs in the box. Names are opened
// one directory at a time below an open root, and no link is followed: the box may have
// made them, and may have written the delta itself, whose volume it can reach. What it can
// do by that is what its root can do anyway.
package delta

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/hostpath"
)

// Records of the tar's headers that only this package knows.
const (
	recordRemoved = "SANDBOX.removed" // the box has no such name any more
	recordSize    = "SANDBOX.size"    // of a file with holes; its content has the data alone
	recordData    = "SANDBOX.data"    // where that data is: "offset,length" for each piece
	recordXattr   = "SCHILY.xattr."   // an extended attribute, as other tars have it
)

// below has a name resolved inside a directory and its mount alone, through no link.
const below = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openDir opens a directory below another one. It must be closed.
func openDir(root int, name string) (*os.File, error) {
	fd, err := hostpath.Openat2(root, name, unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: below})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// look returns what a name is. It follows no link.
func look(dir int, base string) (st unix.Statx_t, err error) {
	err = unix.Statx(dir, base, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &st)
	return st, err
}

// mounted reports whether something is mounted on a name. It is none of the box's then.
func mounted(st *unix.Statx_t) bool { return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 }

// kept reports whether an extended attribute is a box's own.
func kept(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.") ||
		name == "security.capability" || strings.HasPrefix(name, "system.posix_acl_")
}

// within returns the name of what a directory holds under the name base.
func within(dir, base string) string {
	if dir == "." {
		return base
	}
	return dir + "/" + base
}

// failed classifies a failure at a file of the box.
func failed(err error, format, name string) error {
	if err == nil || fault.Classified(err) {
		return err
	}
	return fault.Wrap(fault.Storage, err, format, name)
}
