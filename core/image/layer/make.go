package layer

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// place is where an entry belongs: base is a single name in the directory fd.
type place struct {
	fd         int
	base, name string
}

// make makes one entry. It replaces what has the same name, because the last of
// two entries with one name counts. But an existing directory stays if the
// entry is a directory, and gets the new owner, mode and attributes.
func (x *extractor) make(h *tar.Header, p place, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return x.file(h, p, content)
	case tar.TypeDir:
		return x.dir(h, p)
	case tar.TypeSymlink:
		return x.symlink(h, p)
	case tar.TypeLink:
		return x.hardLink(h, p)
	case tar.TypeFifo:
		return x.fifo(h, p)
	case tar.TypeChar, tar.TypeBlock:
		return refused(p.name, "a device, which an image must not contain")
	}
	return refused(p.name, "an unknown type of entry (%q)", h.Typeflag)
}

func (x *extractor) file(h *tar.Header, p place, content io.Reader) error {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	var fd int
	err := x.replacing(p, func() (err error) {
		fd, err = unix.Openat(p.fd, p.base, flags, uint32(h.Mode)&0o777)
		return err
	})
	if err != nil {
		return err
	}
	err = x.fill(fd, content, h.Size)
	if err == nil {
		err = x.dress(h, fd, p.name)
	}
	if err == nil {
		err = setTime(p.fd, p.base, timespec(h.ModTime))
	}
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	return err
}

// fill writes size bytes of content. Long runs of zeros become holes, because
// the tar reader returns the holes of a sparse file as zeros.
func (x *extractor) fill(fd int, content io.Reader, size int64) error {
	end := int64(0) // the end of what was written
	for at := int64(0); at < size; {
		n, err := io.ReadFull(content, x.buf[:min(size-at, hole)])
		if err != nil {
			return fault.Wrap(fault.Image, err, "damaged tar")
		}
		if n < hole || !bytes.Equal(x.buf[:n], zeros[:n]) {
			if err := writeAt(fd, x.buf[:n], at); err != nil {
				return err
			}
			end = at + int64(n)
		}
		at += int64(n)
	}
	if end < size {
		return unix.Ftruncate(fd, size)
	}
	return nil
}

var zeros [hole]byte

func writeAt(fd int, p []byte, at int64) error {
	for len(p) > 0 {
		n, err := unix.Pwrite(fd, p, at)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		n = max(n, 0)
		p, at = p[n:], at+int64(n)
	}
	return nil
}

func (x *extractor) dir(h *tar.Header, p place) error {
	opaque := false
	err := unix.Mkdirat(p.fd, p.base, 0o700)
	if errors.Is(err, unix.EEXIST) {
		opaque, err = x.makeWay(p)
	}
	if err != nil {
		return err
	}
	fd, err := openDir(p.fd, p.base)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if opaque {
		if err := setOpaque(fd); err != nil {
			return err
		}
	}
	if err := x.dress(h, fd, p.name); err != nil {
		return err
	}
	return x.later(p.name, timespec(h.ModTime))
}

// makeWay makes a directory at a place that is taken. A directory that is there
// stays. A directory that replaces a whiteout is opaque, because the whiteout
// removed the lower one.
func (x *extractor) makeWay(p place) (opaque bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(p.fd, p.base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return false, nil
	}
	err = x.replacing(p, func() error { return unix.Mkdirat(p.fd, p.base, 0o700) })
	return isWhiteout(&st), err
}

func (x *extractor) symlink(h *tar.Header, p place) error {
	if problem := unusable(h.Linkname); problem != "" {
		return refused(p.name, "link target: %s", problem)
	}
	err := x.replacing(p, func() error { return unix.Symlinkat(h.Linkname, p.fd, p.base) })
	if err != nil {
		return err
	}
	if err := unix.Fchownat(p.fd, p.base, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return setTime(p.fd, p.base, timespec(h.ModTime))
}

// hardLink gives an earlier entry another name. It does not follow a symlink
// but makes another name for the symlink itself.
func (x *extractor) hardLink(h *tar.Header, p place) error {
	target, problem := clean(h.Linkname)
	if problem != "" {
		return refused(p.name, "link target: %s", problem)
	}
	if target == p.name {
		return refused(p.name, "a link to itself")
	}
	from, base, err := x.existing(target)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	return x.replacing(p, func() error { return unix.Linkat(from, base, p.fd, p.base, 0) })
}

func (x *extractor) fifo(h *tar.Header, p place) error {
	err := x.replacing(p, func() error { return unix.Mknodat(p.fd, p.base, unix.S_IFIFO|0o600, 0) })
	if err != nil {
		return err
	}
	if err := unix.Fchownat(p.fd, p.base, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Fchmodat(p.fd, p.base, uint32(h.Mode)&0o7777, 0); err != nil {
		return err
	}
	return setTime(p.fd, p.base, timespec(h.ModTime))
}

// replacing calls make. If something is in its way, replacing removes that and
// calls make again. It does not remove a directory that is not empty.
func (x *extractor) replacing(p place, make func() error) error {
	err := make()
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	err = unix.Unlinkat(p.fd, p.base, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(p.fd, p.base, unix.AT_REMOVEDIR)
	}
	switch {
	case errors.Is(err, unix.ENOTEMPTY):
		return refused(p.name, "a directory that has content is replaced by something else")
	case err != nil:
		return err
	}
	x.stale = true // the path to the open directory may have led through it
	return make()
}

// dress sets owner, mode and attributes of the open file fd, in the order that
// keeps them: a change of owner clears setuid bits and capabilities. It first
// compares them, because most files were made with the right owner and mode,
// and a change costs the file system more than a look.
func (x *extractor) dress(h *tar.Header, fd int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	owned := int(st.Uid) == h.Uid && int(st.Gid) == h.Gid
	if !owned {
		if err := unix.Fchown(fd, h.Uid, h.Gid); err != nil {
			return err
		}
	}
	if mode := uint32(h.Mode) & 0o7777; !owned || st.Mode&0o7777 != mode {
		if err := unix.Fchmod(fd, mode); err != nil {
			return err
		}
	}
	for record, value := range h.PAXRecords {
		attr, ok := strings.CutPrefix(record, "SCHILY.xattr.")
		if !ok || !keptAttribute(attr) {
			continue
		}
		if err := setAttribute(fd, attr, value); err != nil {
			return refusedAttribute(name, err)
		}
	}
	return nil
}

func setTime(fd int, base string, mtime unix.Timespec) error {
	return unix.UtimesNanoAt(fd, base, []unix.Timespec{mtime, mtime}, unix.AT_SYMLINK_NOFOLLOW)
}

// timespec converts a time. It also handles times that don't fit into
// nanoseconds since 1970.
func timespec(t time.Time) unix.Timespec {
	if t.IsZero() {
		return unix.Timespec{}
	}
	return unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
}
