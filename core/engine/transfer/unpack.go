package transfer

import (
	"archive/tar"
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// unpack extracts a tar into a directory, which it makes if it is missing. No
// entry is written outside the directory, neither by its name nor by a link.
// Modes and times of files are kept. Owners are kept only if that was asked for: else
// everything belongs to m.Owner, or to who unpacks. Each existing file is replaced in one step, and a new one appears
// as it is written. Files that were extracted before a failure stay.
func unpack(m wire.Move, in *os.File, committed func() (wire.Commit, error)) (wire.Moved, error) {
	at, err := find(namesOf(m.Path))
	if err != nil {
		return wire.Moved{}, err
	}
	defer at.close()
	if at.owner, err = ownerOf(m.Owner); err != nil {
		return wire.Moved{}, err
	}
	dir, err := at.make()
	if err != nil {
		return wire.Moved{}, err
	}
	defer unix.Close(dir)
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return wire.Moved{}, err
	}
	defer root.Close()
	r := bufio.NewReaderSize(in, tarBuffer)
	u := unpacker{root: root, owner: at.owner, keep: m.Owners && !at.owner.other, buf: make([]byte, tarBuffer)}
	defer u.leave()
	if err := u.entries(tar.NewReader(r)); err != nil {
		return wire.Moved{}, err
	}
	if _, err := io.CopyBuffer(io.Discard, onlyReader{r}, u.buf); err != nil { // padding
		return wire.Moved{}, err
	}
	if _, err := committed(); err != nil {
		return wire.Moved{}, err
	}
	return wire.Moved{Path: path.Clean("/" + m.Path), Size: u.size}, nil
}

type unpacker struct {
	root  *os.Root
	dir   string   // the directory of the entry before
	at    *os.Root // that directory; nil if it is not open
	owner owner    // of what is made
	keep  bool     // what is made belongs to whom the tar names
	buf   []byte
	size  int64
}

// ownerOf returns the owner of an entry.
func (u *unpacker) ownerOf(h *tar.Header) owner {
	if u.keep {
		return owner{uint32(h.Uid), uint32(h.Gid), true} // the kernel refuses ids that are none
	}
	return u.owner
}

// enter opens the directory of an entry, which is made if it is missing. It stays open
// for the entries behind it: most are in the same one.
func (u *unpacker) enter(dir string) (err error) {
	if u.at != nil && u.dir == dir {
		return nil
	}
	u.leave()
	if err := u.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	u.dir = dir
	u.at, err = u.root.OpenRoot(dir)
	return err
}

// leave closes the directory that is open.
func (u *unpacker) leave() {
	if u.at != nil {
		_ = u.at.Close()
	}
	u.at = nil
}

func (u *unpacker) entries(tr *tar.Reader) error {
	for {
		h, err := tr.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath): // os.Root checks the paths itself
			return fault.New(fault.InvalidArgument, "read the tar: %v", err)
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue // a comment, as git writes it
		}
		if err := u.entry(h, tr); err != nil {
			var errno unix.Errno
			var known *fault.Error
			if !errors.As(err, &errno) && !errors.As(err, &known) { // from os.Root: a path that leaves the directory
				err = fault.New(fault.InvalidArgument, "%v", err)
			}
			return fmt.Errorf("entry %.200q: %w", h.Name, err)
		}
	}
}

// entry makes the directory, file or link that one header describes.
func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	if name == "." || name == "/" {
		return nil // the directory itself, which is left as it is
	}
	if err := u.enter(path.Dir(name)); err != nil {
		return err
	}
	switch base := path.Base(name); h.Typeflag {
	case tar.TypeDir:
		return u.directory(h, base)
	case tar.TypeReg:
		return u.file(h, base, content)
	case tar.TypeSymlink:
		return u.instead(base, func() error { return u.symlink(h, base) })
	case tar.TypeLink:
		return u.instead(base, func() error { return u.root.Link(path.Clean(h.Linkname), name) })
	}
	return fault.New(fault.InvalidArgument, "neither a file, a directory nor a link")
}

func (u *unpacker) directory(h *tar.Header, name string) error {
	st, err := u.at.Lstat(name)
	switch {
	case err == nil && st.IsDir():
	case err == nil:
		return unix.EEXIST
	default:
		if err := u.at.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	if o := u.ownerOf(h); o.other {
		if err := u.at.Chown(name, int(o.uid), int(o.gid)); err != nil {
			return err
		}
	}
	return u.at.Chmod(name, mode(h))
}

func (u *unpacker) symlink(h *tar.Header, name string) error {
	err := u.at.Symlink(h.Linkname, name)
	if o := u.ownerOf(h); err == nil && o.other {
		err = u.at.Lchown(name, int(o.uid), int(o.gid))
	}
	return err
}

// file makes a file: in its place if nothing is there, because that takes half of the
// system calls, and else in one step over what is there.
func (u *unpacker) file(h *tar.Header, name string, content io.Reader) error {
	err := u.write(h, name, content, func() {})
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	part := ".sandbox-" + rand.Text()
	g := newGuard()
	defer g.end()
	if err := u.write(h, part, content, func() { g.begin(func() { _ = u.at.Remove(part) }) }); err != nil {
		return err
	}
	err = u.replaceable(name)
	if err == nil {
		err = u.at.Rename(part, name)
	}
	if err != nil {
		_ = u.at.Remove(part)
	}
	return err
}

// write makes a file that was not there, and calls made when it is there. On failure it
// is not there either.
func (u *unpacker) write(h *tar.Header, name string, content io.Reader, made func()) error {
	f, err := u.at.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	made()
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, onlyReader{content}, u.buf)
	u.size += n
	if o := u.ownerOf(h); err == nil && o.other { // before the mode, as a change of owner clears the set-id bits
		err = f.Chown(int(o.uid), int(o.gid))
	}
	err = errors.Join(err, f.Chmod(mode(h)), f.Close())
	if err == nil {
		err = u.at.Chtimes(name, h.ModTime, h.ModTime)
	}
	if err != nil {
		_ = u.at.Remove(name)
	}
	return err
}

// instead makes a link, in place of a file or link of that name if there is one.
func (u *unpacker) instead(name string, make func() error) error {
	if err := u.replaceable(name); err != nil {
		return err
	}
	if err := u.at.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return make()
}

// replaceable returns an error if name may not be replaced. Only a regular file
// or a symbolic link may be, and a name that does not exist passes too.
func (u *unpacker) replaceable(name string) error {
	st, err := u.at.Lstat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.IsDir():
		return fault.New(fault.IsDirectory, "a directory is there")
	case !st.Mode().IsRegular() && st.Mode()&os.ModeSymlink == 0:
		return fault.New(fault.InvalidArgument, "what is there is not a regular file")
	}
	return nil
}

// mode returns the mode of an entry as package os represents it.
func mode(h *tar.Header) os.FileMode {
	m := os.FileMode(h.Mode & 0o777)
	for bit, flag := range map[int64]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if h.Mode&bit != 0 {
			m |= flag
		}
	}
	return m
}
