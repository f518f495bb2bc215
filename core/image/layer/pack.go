package layer

import (
	"archive/tar"
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/hostpath"
)

// Pack writes the layer in the directory root to w, as the plain tar that
// [Extract] makes the same layer of. The same layer always gives the same bytes:
// entries are in a fixed order, and of times only those of the last change are
// kept, to the nanosecond. Whiteouts become those of images. Owners, modes, hard
// links, user.* attributes and file capabilities are kept; sockets and other
// attributes are left out. A layer that a box has made has ids of the box's
// range, as the owner of root tells: they become those that the box saw.
//
// The tree may come from a hostile box. No link in it is followed, and lim
// bounds what is written. Errors: Image (it has what no image can have),
// TooLarge (it is beyond lim), Storage, those of w, and what ended ctx.
func Pack(ctx context.Context, root *os.File, w io.Writer, lim Limits) error {
	defer runtime.KeepAlive(root) // otherwise the garbage collector might close its descriptor
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return fault.Disk(err, "read a layer")
	}
	out := bufio.NewWriterSize(w, readAhead)
	p := &packer{
		ctx: ctx, root: int(root.Fd()), base: st.Uid &^ maxID, lim: lim,
		tw: tar.NewWriter(out), links: map[uint64]string{}, buf: make([]byte, readAhead),
	}
	for p.dirs = []string{"."}; len(p.dirs) > 0; {
		last := len(p.dirs) - 1
		name := p.dirs[last]
		p.dirs = p.dirs[:last]
		if err := p.dir(name); err != nil {
			return p.failed(name, err)
		}
	}
	if err := p.tw.Close(); err != nil {
		return p.failed(".", err)
	}
	return out.Flush()
}

// packer is the state of one [Pack].
type packer struct {
	ctx   context.Context
	root  int
	base  uint32 // the first id of the range that the layer was made in
	lim   Limits // what is still allowed
	tw    *tar.Writer
	dirs  []string          // directories that are still to be packed, the next one last
	links map[uint64]string // the first names of files with several, by their inodes
	buf   []byte
}

// entry is a file or directory of the layer. h.Name is its name.
type entry struct {
	fd int
	st unix.Stat_t
	h  tar.Header
}

// dir packs a directory and what it holds, and notes the directories in it for
// later. It opens the directory by its whole name, so that however deep the tree
// is, few descriptors are open.
func (p *packer) dir(name string) error {
	fd, err := hostpath.Openat2(p.root, name, unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	e := entry{fd: fd}
	if err := unix.Fstat(fd, &e.st); err != nil {
		return err
	}
	opaque, err := p.dirHeader(&e, name)
	if err != nil {
		return err
	}
	if opaque {
		if err := p.mark(within(name, whiteoutOpaque)); err != nil {
			return err
		}
	}
	return p.contents(d, name)
}

// dirHeader writes the header of a directory, and returns whether the directory
// is opaque.
func (p *packer) dirHeader(e *entry, name string) (opaque bool, err error) {
	if err := p.describe(e, name); err != nil {
		return false, err
	}
	e.h.Typeflag, e.h.Name = tar.TypeDir, name+"/"
	if opaque, err = p.attributes(e); err != nil {
		return false, err
	}
	return opaque, p.tw.WriteHeader(&e.h)
}

// contents packs what the open directory d holds.
func (p *packer) contents(d *os.File, dir string) error {
	bases, err := p.list(d)
	if err != nil {
		return err
	}
	var below []string
	for _, base := range bases {
		name := within(dir, base)
		isDir, err := p.entry(int(d.Fd()), base, name)
		if err != nil {
			return p.failed(name, err)
		}
		if isDir {
			below = append(below, name)
		}
	}
	slices.Reverse(below)
	p.dirs = append(p.dirs, below...)
	return nil
}

// list returns the sorted names of what a directory holds.
func (p *packer) list(d *os.File) ([]string, error) {
	var all []string
	for {
		some, err := d.Readdirnames(1024)
		all = append(all, some...)
		if p.lim.Entries -= int64(len(some)); p.lim.Entries < 0 {
			return nil, fault.New(fault.TooLarge, "the layer has more files than an image may have")
		}
		if err == io.EOF {
			slices.Sort(all)
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// entry packs one entry that is not a directory; of a directory it says so.
func (p *packer) entry(fd int, base, name string) (isDir bool, err error) {
	if err := p.ctx.Err(); err != nil {
		return false, fault.Of(err)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	e := &entry{fd: fd, st: st}
	switch problem := unusable(name); {
	case problem != "":
		return false, unfit(name, "it has %s", problem)
	case strings.HasPrefix(base, whiteoutPrefix):
		return false, unfit(name, "there, names that begin with %s stand for files that were removed", whiteoutPrefix)
	case isWhiteout(&st):
		return false, p.mark(within(strings.TrimSuffix(name, base), whiteoutPrefix+base))
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return true, nil
	case unix.S_IFSOCK:
		return false, nil // a socket is useless without its listener, which is not in the image
	case unix.S_IFREG, unix.S_IFLNK, unix.S_IFIFO:
		return false, p.leaf(e, base, name)
	}
	return false, unfit(name, "it is a device")
}

// leaf packs a file, a symlink or a FIFO, or a link to one that was packed under
// another name.
func (p *packer) leaf(e *entry, base, name string) (err error) {
	if err := p.describe(e, name); err != nil {
		return err
	}
	if p.linked(e) {
		e.h.Typeflag = tar.TypeLink
		return p.tw.WriteHeader(&e.h)
	}
	switch e.st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return p.file(e, base)
	case unix.S_IFLNK:
		e.h.Typeflag = tar.TypeSymlink
		if e.h.Linkname, err = p.target(e.fd, base); err != nil {
			return err
		}
	default:
		e.h.Typeflag = tar.TypeFifo
	}
	return p.tw.WriteHeader(&e.h)
}

// describe fills in what the header of every type of entry has.
func (p *packer) describe(e *entry, name string) error {
	uid, gid := e.st.Uid-p.base, e.st.Gid-p.base // an id below the range wraps around and is above it
	if uid > maxID || gid > maxID {
		return unfit(name, "its owner %d:%d is none of a box", e.st.Uid, e.st.Gid)
	}
	e.h = tar.Header{
		Format: tar.FormatPAX, Name: name, Mode: int64(e.st.Mode & 0o7777),
		Uid: int(uid), Gid: int(gid), ModTime: time.Unix(e.st.Mtim.Unix()),
	}
	return nil
}

// linked makes e a link if its inode was packed under another name, and returns
// whether it did.
func (p *packer) linked(e *entry) bool {
	if e.st.Nlink < 2 {
		return false
	}
	first, ok := p.links[e.st.Ino]
	if !ok {
		p.links[e.st.Ino] = e.h.Name
	}
	e.h.Linkname = first
	return ok
}

// target returns what a symlink points to.
func (p *packer) target(fd int, base string) (string, error) {
	n, err := unix.Readlinkat(fd, base, p.buf)
	if err != nil {
		return "", err
	}
	return string(p.buf[:n]), nil
}

// mark packs an empty file whose name says what of lower layers is removed. It
// has no time, because that of a whiteout says nothing.
func (p *packer) mark(name string) error {
	return p.tw.WriteHeader(&tar.Header{Format: tar.FormatPAX, Name: name, Typeflag: tar.TypeReg, Mode: 0o600, ModTime: time.Unix(0, 0)})
}

// within returns the name of what a directory holds under the name base.
func within(dir, base string) string {
	if dir == "." || dir == "" {
		return base
	}
	return strings.TrimSuffix(dir, "/") + "/" + base
}

// unfit returns the error for what no image can have.
func unfit(name, format string, args ...any) error {
	return fault.New(fault.Image, "%s can't be in an image: %s", quote(name), fmt.Sprintf(format, args...))
}

// failed classifies the error of packing an entry.
func (p *packer) failed(name string, err error) error {
	if fault.Classified(err) {
		return err
	}
	return fault.Disk(err, "pack %s of a layer", quote(name))
}
