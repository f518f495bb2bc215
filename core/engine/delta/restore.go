package delta

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Restore makes the files below root, which are those of the image, the ones that Save
// has written. Errors: Storage.
func Restore(r io.Reader, root *os.Root) error {
	top, err := root.Open(".")
	if err != nil {
		return failed(err, "restore %.200q", "/")
	}
	defer top.Close()
	// Whatever the delta says, it gets as much memory as Save needed.
	plain, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "read what the box has changed")
	}
	defer plain.Close()
	x := restorer{all: root, root: top, dirs: map[string]time.Time{}, buf: make([]byte, blockSize)}
	tr := tar.NewReader(plain)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fault.Wrap(fault.Storage, err, "the saved disk of the box is damaged")
		}
		if err := x.entry(h, tr); err != nil {
			return failed(err, "restore %.200q", h.Name)
		}
	}
	if _, err := io.Copy(io.Discard, plain); err != nil { // up to the checksum
		return fault.Wrap(fault.Storage, err, "the saved disk of the box is damaged")
	}
	if len(x.dirs) == 0 { // not even the root's
		return fault.New(fault.Storage, "the saved disk of the box is damaged: it is empty")
	}
	return x.times()
}

type restorer struct {
	all  *os.Root
	root *os.File             // the same
	dirs map[string]time.Time // their times come last, since what is made in them changes those
	buf  []byte
}

var errDamaged = errors.New("the saved disk of the box is damaged")

// parent opens the directory that a name is in.
func (x *restorer) parent(name string) (dir *os.File, base string, err error) {
	if path.Clean(name) != name || name == "." || !filepath.IsLocal(name) {
		return nil, "", errDamaged
	}
	dir, err = openDir(int(x.root.Fd()), path.Dir(name))
	return dir, path.Base(name), err
}

func (x *restorer) entry(h *tar.Header, content io.Reader) error {
	h.Name = strings.TrimSuffix(h.Name, "/")
	if h.Name == "." {
		x.dirs["."] = h.ModTime
		return dress(int(x.root.Fd()), h)
	}
	dir, base, err := x.parent(h.Name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := x.remember(dir); err != nil {
		return err
	}
	now, err := look(int(dir.Fd()), base)
	there := err == nil
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if there && mounted(&now) {
		return nil
	}
	isDir := there && now.Mode&unix.S_IFMT == unix.S_IFDIR
	removed := h.PAXRecords[recordRemoved] != ""
	if there && (removed || h.Typeflag != tar.TypeDir || !isDir) {
		if err := x.all.RemoveAll(h.Name); err != nil {
			return err
		}
		there = false
	}
	if removed {
		return nil
	}
	return x.make(h, dir, base, there, content)
}

// remember notes the time of a directory that is about to change, unless the delta has
// told another.
func (x *restorer) remember(dir *os.File) error {
	if _, known := x.dirs[dir.Name()]; known {
		return nil
	}
	st, err := look(int(dir.Fd()), ".")
	x.dirs[dir.Name()] = timeOf(st.Mtime)
	return err
}

// make makes a name of which nothing is there, unless it is a directory.
func (x *restorer) make(h *tar.Header, dir *os.File, base string, there bool, content io.Reader) error {
	at := int(dir.Fd())
	switch h.Typeflag {
	case tar.TypeDir:
		return x.directory(h, at, base, there)
	case tar.TypeReg:
		return x.file(h, at, base, content)
	case tar.TypeLink:
		from, first, err := x.parent(h.Linkname)
		if err != nil {
			return err
		}
		defer from.Close()
		return unix.Linkat(int(from.Fd()), first, at, base, 0)
	case tar.TypeSymlink:
		if err := unix.Symlinkat(h.Linkname, at, base); err != nil {
			return err
		}
	case tar.TypeFifo:
		if err := unix.Mknodat(at, base, unix.S_IFIFO|0o600, 0); err != nil {
			return err
		}
		if err := unix.Fchmodat(at, base, uint32(h.Mode)&0o7777, 0); err != nil {
			return err
		}
	default:
		return errDamaged
	}
	if err := unix.Fchownat(at, base, h.Uid, h.Gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return setTime(at, base, h.ModTime)
}

func (x *restorer) directory(h *tar.Header, at int, base string, there bool) error {
	if !there {
		if err := unix.Mkdirat(at, base, 0o700); err != nil {
			return err
		}
	}
	fd, err := unix.Openat(at, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	x.dirs[h.Name] = h.ModTime
	return dress(fd, h)
}

func (x *restorer) file(h *tar.Header, at int, base string, content io.Reader) (err error) {
	fd, err := unix.Openat(at, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), base)
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := x.fill(h, to, content); err != nil {
		return err
	}
	if err := dress(fd, h); err != nil {
		return err
	}
	return setTime(at, base, h.ModTime)
}

// fill writes the content of a file. Where it says so, there are holes.
func (x *restorer) fill(h *tar.Header, to *os.File, content io.Reader) error {
	size, pieces := h.Size, []piece{{0, h.Size}}
	if text, holes := h.PAXRecords[recordSize]; holes {
		var err error
		if size, err = strconv.ParseInt(text, 10, 64); err != nil {
			return errDamaged
		}
		if pieces, err = parsePieces(h.PAXRecords[recordData]); err != nil {
			return err
		}
	}
	if sum(pieces) != h.Size {
		return errDamaged
	}
	for _, p := range pieces {
		if _, err := io.CopyBuffer(io.NewOffsetWriter(to, p.at), io.LimitReader(content, p.length), x.buf); err != nil {
			return err
		}
	}
	return to.Truncate(size)
}

func parsePieces(text string) (pieces []piece, err error) {
	for field := range strings.FieldsSeq(text) {
		at, length, _ := strings.Cut(field, ",")
		var p piece
		p.at, err = strconv.ParseInt(at, 10, 64)
		if err == nil {
			p.length, err = strconv.ParseInt(length, 10, 64)
		}
		if err != nil || p.at < 0 || p.length < 0 {
			return nil, errDamaged
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// dress gives an open file or directory the owner, mode and attributes that it had. The
// owner comes first, since a change of it drops the bits of set-user-id programs and file
// capabilities.
func dress(fd int, h *tar.Header) error {
	if err := unix.Fchown(fd, h.Uid, h.Gid); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, uint32(h.Mode)&0o7777); err != nil {
		return err
	}
	if err := undress(fd, h); err != nil {
		return err
	}
	for record, value := range h.PAXRecords {
		name, is := strings.CutPrefix(record, recordXattr)
		if !is || !kept(name) {
			continue
		}
		if err := unix.Fsetxattr(fd, name, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// undress removes attributes of an image's directory that the box has removed.
func undress(fd int, h *tar.Header) error {
	names := make([]byte, 64<<10)
	n, err := unix.Flistxattr(fd, names)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names[:n], []byte{0}), []byte{0}) {
		if _, has := h.PAXRecords[recordXattr+string(name)]; has || !kept(string(name)) {
			continue
		}
		if err := unix.Fremovexattr(fd, string(name)); err != nil {
			return err
		}
	}
	return nil
}

func setTime(dir int, base string, t time.Time) error {
	at := unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())} // nanoseconds alone don't reach far
	return unix.UtimesNanoAt(dir, base, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// times gives the directories the times that they had.
func (x *restorer) times() error {
	for name, t := range x.dirs {
		dir, err := openDir(int(x.root.Fd()), name)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) { // it was removed later
			continue
		}
		if err == nil {
			err = setTime(int(dir.Fd()), ".", t)
			_ = dir.Close()
		}
		if err != nil {
			return failed(err, "restore the time of %.200q", name)
		}
	}
	return nil
}
