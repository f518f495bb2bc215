package tree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Open returns the tree of a directory of the host. Its files are read when they are
// copied. Errors: InvalidArgument (dir, .dockerignore), TooLarge, PermissionDenied, and
// what ended ctx.
func Open(ctx context.Context, dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "the context")
	}
	t, err := index(ctx, root)
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return t, nil
}

func index(ctx context.Context, root *os.Root) (*Tree, error) {
	patterns, err := readIgnore(root)
	if err != nil {
		return nil, err
	}
	ignored, err := newIgnore(patterns)
	if err != nil {
		return nil, err
	}
	w := walker{builder: newBuilder(ignored), ctx: ctx, root: root}
	if err := w.directory("."); err != nil {
		return nil, err
	}
	return w.tree(directory{root}), nil
}

// readIgnore returns the .dockerignore of a directory, or nothing.
func readIgnore(root *os.Root) ([]byte, error) {
	f, err := root.OpenFile(IgnoreFile, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "the context")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore+1))
	return text, fault.Wrap(fault.InvalidArgument, err, "the context")
}

// walker adds the files of a directory.
type walker struct {
	*builder
	ctx  context.Context //nolint:containedctx // of one walk
	root *os.Root
}

// directory adds what is in a directory.
func (w *walker) directory(dir string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	f, err := w.root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return unreadable(err)
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close()
	if err != nil {
		return unreadable(err)
	}
	for _, e := range entries {
		if err := w.entry(path.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// entry adds one file, and what is in it if it is a directory. One that was removed
// meanwhile is left out.
func (w *walker) entry(name string) error {
	st, err := w.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	left, below := w.ignore.leaves(name, st.IsDir())
	if !left {
		if err := w.file(name, st); err != nil {
			return err
		}
	}
	if st.IsDir() && (!left || below) {
		return w.directory(name)
	}
	return nil
}

// file adds a file, if it is of a kind that trees have.
func (w *walker) file(name string, st fs.FileInfo) error {
	f := &File{Path: name, Mode: bits(st.Mode()), Modified: st.ModTime()}
	switch {
	case st.IsDir():
		f.Kind = Directory
	case st.Mode().IsRegular():
		f.Size = st.Size()
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(name)
		if err != nil {
			return unreadable(err)
		}
		f.Kind, f.Target = Link, target
	default:
		return nil
	}
	return w.add(f)
}

// bits returns the permission bits of a mode as the kernel has them.
func bits(m fs.FileMode) int {
	n := int(m.Perm())
	for flag, bit := range map[fs.FileMode]int{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&flag != 0 {
			n |= bit
		}
	}
	return n
}

func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(fault.PermissionDenied, err, "read the context")
	}
	return fault.Wrap(fault.InvalidArgument, err, "read the context")
}

// directory has the contents of the files of a directory. None is read by a name that
// leads out of it, whatever has become of the directory since it was looked through.
type directory struct{ root *os.Root }

func (d directory) open(f *File) (io.ReadCloser, error) {
	file, err := d.root.OpenFile(f.Path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, unreadable(err)
	}
	st, err := file.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fault.New(fault.InvalidArgument, "%.200q of the context is not a file any more", f.Path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Close closes the directory.
func (d directory) Close() error { return d.root.Close() }
