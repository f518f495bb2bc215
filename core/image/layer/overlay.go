package layer

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// What the layers of an image say of lower ones: `.wh.NAME` removes NAME,
// `.wh..wh..opq` all that a directory had. Other `.wh..wh.` names are left from
// AUFS and mean nothing here.
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// opaqueAttribute is overlayfs's, where it is mounted with userxattr.
const opaqueAttribute = "user.overlay.opaque"

// whiteout makes the entry if it is one; done tells.
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
		return true, refused(name, "a whiteout of nothing")
	default:
		err = hide(fd, victim)
	}
	if err != nil {
		return true, failed(name, err)
	}
	return true, nil
}

// hide makes a whiteout. It speaks of lower layers only: what this one has
// under the name stays, and a directory of this one hides all of a lower one.
func hide(fd int, victim string) error {
	err := unix.Mknodat(fd, victim, unix.S_IFCHR, 0) // 0:0 needs no CAP_MKNOD
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

// keptAttribute tells which extended attributes a layer keeps. overlayfs's
// own would let a tar redirect or hide what lies in other layers, so none
// comes in, also not one that is escaped for a nested overlay.
func keptAttribute(name string) bool {
	if name == "security.capability" {
		return true
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
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
