package layer

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// How a layer of an image refers to lower layers: `.wh.NAME` removes NAME, and
// `.wh..wh..opq` removes all that a directory had. Other names with the prefix
// `.wh..wh.` are leftovers of AUFS and have no meaning here.
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// opaqueAttribute is the attribute of an opaque directory in overlayfs, when it
// is mounted with userxattr.
const opaqueAttribute = "user.overlay.opaque"

const capabilityAttribute = "security.capability"

// whiteout makes the entry if it is a whiteout, and returns whether it is one.
func (x *extractor) whiteout(fd int, name, base string) (done bool, err error) {
	victim, ok := strings.CutPrefix(base, whiteoutPrefix)
	switch {
	case !ok:
		return false, nil
	case base == whiteoutOpaque:
		err = opaqueByName(fd, ".")
	case strings.HasPrefix(base, whiteoutMeta):
		return true, nil
	case victim == "" || victim == "." || victim == "..":
		return true, refused(name, "a whiteout that names no file")
	default:
		err = hide(fd, victim)
	}
	if err != nil {
		return true, failed(name, err)
	}
	return true, nil
}

// hide makes a whiteout. A whiteout concerns only lower layers: what this layer
// has under the name stays, and a directory of this layer hides all of a lower
// one.
func hide(fd int, victim string) error {
	err := unix.Mknodat(fd, victim, unix.S_IFCHR, 0) // device 0:0 needs no CAP_MKNOD
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	err = opaqueByName(fd, victim)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

func opaqueByName(fd int, base string) error {
	dir, err := openDir(fd, base)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return setOpaque(dir)
}

func setOpaque(fd int) error {
	if err := setAttribute(fd, opaqueAttribute, "y"); err != nil {
		return refusedAttribute("", err)
	}
	return nil
}

func isWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// keptAttribute reports whether a layer keeps an extended attribute. Attributes
// of overlayfs would let a tar redirect or hide files of other layers, so none
// is kept, not even one that is escaped for a nested overlay.
func keptAttribute(name string) bool {
	if name == capabilityAttribute {
		return true
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.") && !strings.HasPrefix(name, ownMarks)
}

func setAttribute(fd int, name, value string) error {
	return unix.Fsetxattr(fd, name, []byte(value), 0)
}

func refusedAttribute(name string, err error) error {
	if errors.Is(err, unix.ENOTSUP) {
		return fault.Wrap(fault.Storage, err, "the file system of the home has no extended attributes, set SANDBOX_HOME to one that has (ext4, xfs, btrfs)")
	}
	return failed(name, err)
}
