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
// Modes and times of files are kept, but owners are not: everything belongs to
// the box's root. Each existing file is replaced in one step. Files that were
// extracted before a failure stay.
func unpack(m wire.Move, in *os.File, committed func() (wire.Commit, error)) (wire.Moved, error) {
	at, err := find(namesOf(m.Path))
	if err != nil {
		return wire.Moved{}, err
	}
	defer at.close()
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
	u := unpacker{root: root, buf: make([]byte, tarBuffer)}
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
	root *os.Root
	buf  []byte
	size int64
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
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.dir(h, name)
	case tar.TypeReg:
		return u.file(h, name, content)
	case tar.TypeSymlink:
		return u.instead(name, func() error { return u.root.Symlink(h.Linkname, name) })
	case tar.TypeLink:
		return u.instead(name, func() error { return u.root.Link(path.Clean(h.Linkname), name) })
	}
	return fault.New(fault.InvalidArgument, "neither a file, a directory nor a link")
}

func (u *unpacker) dir(h *tar.Header, name string) error {
	st, err := u.root.Lstat(name)
	switch {
	case err == nil && st.IsDir():
	case err == nil:
		return unix.EEXIST
	default:
		if err := u.root.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	return u.root.Chmod(name, mode(h))
}

func (u *unpacker) file(h *tar.Header, name string, content io.Reader) error {
	part := path.Join(path.Dir(name), ".sandbox-"+rand.Text())
	f, err := u.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, onlyReader{content}, u.buf)
	u.size += n
	err = errors.Join(err, f.Chmod(mode(h)), f.Close())
	if err == nil {
		err = u.root.Chtimes(part, h.ModTime, h.ModTime)
	}
	if err == nil {
		err = u.replaceable(name)
	}
	if err == nil {
		err = u.root.Rename(part, name)
	}
	if err != nil {
		_ = u.root.Remove(part)
	}
	return err
}

// instead makes a link, in place of a file or link of that name if there is one.
func (u *unpacker) instead(name string, make func() error) error {
	if err := u.replaceable(name); err != nil {
		return err
	}
	if err := u.root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return make()
}

// replaceable returns an error if name may not be replaced. Only a regular file
// or a symbolic link may be, and a name that does not exist passes too.
func (u *unpacker) replaceable(name string) error {
	st, err := u.root.Lstat(name)
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
