package hostcopy

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"sandbox/core/fault"
)

// hostFailure classifies the failure of a file of this host.
func hostFailure(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.FileNotFound, err, "on this host")
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(fault.PermissionDenied, err, "on this host")
	}
	return fault.Wrap(fault.InvalidArgument, err, "on this host")
}

// tarBuffer is how many bytes of a tar are handed on at once: headers alone would wake
// the other side each time.
const tarBuffer = 256 << 10

// fileBuffer is how many bytes of a file are written at once.
const fileBuffer = 64 << 10

// pack writes what is in a directory as a tar.
func pack(w io.Writer, dir string) error {
	buf := bufio.NewWriterSize(w, tarBuffer)
	t := tar.NewWriter(buf)
	if err := t.AddFS(os.DirFS(dir)); err != nil {
		return hostFailure(err)
	}
	return errors.Join(t.Close(), buf.Flush())
}

// unpack unpacks a tar from a box with one file or directory in it. That goes into
// dest if dest is a directory, and becomes dest otherwise. unpack returns the path
// of what it made. The box is hostile: whatever the names in the tar are, nothing
// is made outside of that path, and no link in it leads out.
func unpack(r io.Reader, dest string) (string, error) {
	t := tar.NewReader(bufio.NewReaderSize(r, tarBuffer))
	first, err := t.Next()
	if err != nil {
		return "", fault.Wrap(fault.Upstream, err, "read the tar")
	}
	top := path.Clean(first.Name)
	if strings.Contains(top, "/") || !fs.ValidPath(top) || top == "." {
		return "", fault.New(fault.Upstream, "the tar begins with %q, which is not the name of a file", first.Name)
	}
	parent, name, err := landing(dest, top)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return "", hostFailure(err)
	}
	defer root.Close()
	x := extraction{root: root, modes: map[string]fs.FileMode{}, umask: umask(), buf: make([]byte, fileBuffer)}
	if first.Typeflag == tar.TypeDir {
		err = x.tree(name, top, first, t)
	} else {
		err = x.single(name, first, t)
	}
	return filepath.Join(parent, name), err
}

// landing returns the directory of this host that a copy to dest goes into, and the
// copy's name there. top is its name in the box.
func landing(dest, top string) (parent, name string, err error) {
	if st, err := os.Stat(dest); err == nil && st.IsDir() || strings.HasSuffix(dest, "/") {
		return dest, top, nil
	}
	parent, name = filepath.Split(dest)
	if name == "" || name == "." || name == ".." {
		return "", "", fault.New(fault.InvalidArgument, "%q can't be the name of a file or directory", dest)
	}
	return filepath.Clean(parent), name, nil
}

// extraction is the unpacking of one tar into root.
type extraction struct {
	root  *os.Root
	modes map[string]fs.FileMode // of directories; set at the end, since they may forbid writing
	umask fs.FileMode
	buf   []byte
}

// single makes the only entry of a tar.
func (x *extraction) single(name string, first *tar.Header, t *tar.Reader) error {
	if err := x.entry(name, first, t); err != nil {
		return err
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return fault.Wrap(fault.Upstream, errors.Join(err, errors.New("the tar has more than one file")), "read the tar")
	}
	return nil
}

// tree makes a directory called name with all entries of a tar, whose names must
// lie below top. The directory becomes the root, so that no entry and no link is
// followed out of it.
func (x *extraction) tree(name, top string, first *tar.Header, t *tar.Reader) error {
	if err := x.dir(name, 0o700); err != nil {
		return hostFailure(err)
	}
	inside, err := x.root.OpenRoot(name)
	if err != nil {
		return hostFailure(err)
	}
	defer inside.Close()
	x.root, x.modes = inside, map[string]fs.FileMode{".": x.permissions(first)}
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return x.finish()
		}
		if err != nil {
			return fmt.Errorf("read the tar: %w", err)
		}
		name, err := below(top, h)
		if err == nil {
			err = x.entry(name, h, t)
		}
		if err != nil {
			return err
		}
	}
}

// below returns the path of an entry relative to top, and makes the target of a
// hard link relative to top, too. Errors: Upstream (it is not below top).
func below(top string, h *tar.Header) (string, error) {
	rest, ok := strings.CutPrefix(path.Clean(h.Name), top+"/")
	if !ok || !fs.ValidPath(rest) || rest == "." {
		return "", fault.New(fault.Upstream, "the tar names %q, which is not in %q", h.Name, top)
	}
	if h.Typeflag == tar.TypeLink {
		target, ok := strings.CutPrefix(path.Clean(h.Linkname), top+"/")
		if !ok || !fs.ValidPath(target) {
			return "", fault.New(fault.Upstream, "the tar links to %q, which is not in %q", h.Linkname, top)
		}
		h.Linkname = target
	}
	return rest, nil
}

// permissions leaves out setuid and setgid, since on this host the file is ours,
// and what the umask keeps from others. A directory stays sticky.
func (x *extraction) permissions(h *tar.Header) fs.FileMode {
	info := h.FileInfo().Mode()
	mode := info & fs.ModePerm &^ x.umask
	if info.IsDir() {
		mode |= info & fs.ModeSticky
	}
	return mode
}

// umask returns this process's. The system call that tells it changes it, for all
// threads; /proc tells it too.
func umask() fs.FileMode {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0o077
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "Umask:"); ok {
			if mask, err := strconv.ParseUint(strings.TrimSpace(value), 8, 32); err == nil {
				return fs.FileMode(mask)
			}
		}
	}
	return 0o077
}

// entry makes one entry. Devices, FIFOs and sockets are left out: they mean
// nothing outside of their box.
func (x *extraction) entry(name string, h *tar.Header, content io.Reader) error {
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		err = x.dir(name, x.permissions(h))
	case tar.TypeReg:
		err = x.file(name, x.permissions(h), content)
	case tar.TypeSymlink:
		err = x.link(name, func() error { return x.root.Symlink(h.Linkname, name) })
	case tar.TypeLink:
		err = x.link(name, func() error { return x.root.Link(h.Linkname, name) })
	}
	if err != nil && !fault.Classified(err) {
		return hostFailure(err)
	}
	return err
}

// dir makes a directory, or uses the one that is there.
func (x *extraction) dir(name string, mode fs.FileMode) error {
	st, err := x.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = x.root.Mkdir(name, 0o700)
	case err == nil && !st.IsDir():
		err = fmt.Errorf("%s exists and is not a directory", name)
	}
	x.modes[name] = mode
	return err
}

// file makes a file, in place of one that is there.
func (x *extraction) file(name string, mode fs.FileMode, content io.Reader) error {
	f, err := x.newFile(name, mode)
	if errors.Is(err, fs.ErrExist) {
		if err := x.clear(name); err != nil {
			return err
		}
		f, err = x.newFile(name, mode)
	}
	if err != nil {
		return err
	}
	// Without the file's ReadFrom, which would allocate a buffer for each file.
	if _, err := io.CopyBuffer(struct{ io.Writer }{f}, content, x.buf); err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, f.Close()))
	}
	return f.Close()
}

// newFile makes a file where none is. The umask takes nothing from mode, since
// permissions has taken it.
func (x *extraction) newFile(name string, mode fs.FileMode) (*os.File, error) {
	return x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// link makes a link, in place of a file that is there.
func (x *extraction) link(name string, make func() error) error {
	if err := x.clear(name); err != nil {
		return err
	}
	return make()
}

// clear removes the file or link of that name, if there is one.
func (x *extraction) clear(name string) error {
	delete(x.modes, name)
	if err := x.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// finish sets the modes of the directories.
func (x *extraction) finish() error {
	var errs []error
	for name, mode := range x.modes {
		if err := x.root.Chmod(name, mode); err != nil {
			errs = append(errs, hostFailure(err))
		}
	}
	return errors.Join(errs...)
}
