package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// open detects what kind of source it is given, and opens it.
func (s *Store) open(ctx context.Context, source string) (content, error) {
	st, err := os.Stat(source)
	switch {
	case err != nil:
		return content{}, fault.Wrap(fault.InvalidArgument, err, "image source")
	case st.IsDir():
		return openDir(ctx, source)
	case !st.Mode().IsRegular():
		return content{}, fault.New(fault.InvalidArgument, "image source %s is neither a directory nor a file", source)
	}
	f, err := os.Open(source)
	if err != nil {
		return content{}, fault.Wrap(fault.InvalidArgument, err, "image source")
	}
	return s.owned(ctx, f, st.Size())
}

// owned opens a tar, and closes it if that fails.
func (s *Store) owned(ctx context.Context, f *os.File, size int64) (content, error) {
	c, err := s.openTar(ctx, f, size)
	if err != nil {
		_ = f.Close()
	}
	return c, err
}

// keep reads r to its end and opens the tar that it was.
func (s *Store) keep(ctx context.Context, r io.Reader) (content, error) {
	f, err := s.unnamed()
	if err != nil {
		return content{}, err
	}
	size, err := io.Copy(f, &roomReader{r: io.LimitReader(r, maxStream+1), room: room{check: s.c.Room}})
	if err == nil && size > maxStream {
		err = fault.New(fault.TooLarge, "the tar is larger than the %d bytes allowed", int64(maxStream))
	}
	if err != nil {
		_ = f.Close()
		return content{}, fault.Disk(err, "store the tar of the image")
	}
	return s.owned(ctx, f, size)
}

// Pack returns an image source as one stream: a file as it is, a directory as the
// tar that Import would make of it. Errors: InvalidArgument (it is missing, or
// neither); a Read fails with Image if the directory can't be read.
func Pack(ctx context.Context, source string) (io.ReadCloser, error) {
	f, err := os.OpenFile(source, os.O_RDONLY|unix.O_NONBLOCK, 0) // without O_NONBLOCK, opening a FIFO would block
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "image source")
	}
	st, err := f.Stat()
	if err == nil && st.Mode().IsRegular() {
		return f, nil
	}
	_ = f.Close()
	if err != nil || !st.IsDir() {
		return nil, fault.New(fault.InvalidArgument, "image source %s is neither a directory nor a file", source)
	}
	root, err := os.OpenRoot(source)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidArgument, err, "image source")
	}
	return packed{packDir(ctx, root), root}, nil
}

// packed is the tar of a directory.
type packed struct {
	io.ReadCloser
	root *os.Root
}

func (p packed) Close() error { return errors.Join(p.ReadCloser.Close(), p.root.Close()) }

func openDir(ctx context.Context, dir string) (content, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return content{}, fault.Wrap(fault.InvalidArgument, err, "image source")
	}
	if _, err := root.Lstat(layoutFile); err != nil {
		return rootfs(func(ctx context.Context, _ func(int64)) (io.ReadCloser, error) { return packDir(ctx, root), nil }, 0, func() { _ = root.Close() }), nil
	}
	c, err := readLayout(ctx, dirFiles{root})
	if err != nil {
		_ = root.Close()
		return content{}, err
	}
	c.close = func() { _ = root.Close() }
	return c, nil
}

// rootfs returns the content of a source that is nothing but a root file
// system.
func rootfs(open opener, size int64, giveUp func()) content {
	return content{
		config: v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux"},
		layers: []blob{{size: size, open: open}},
		close:  giveUp,
	}
}

// openTar opens a tar and detects whether it is the tar of a root file system
// or of an image. The content owns f.
func (s *Store) openTar(ctx context.Context, f *os.File, size int64) (content, error) {
	first, packed, err := firstName(ctx, f)
	if err != nil {
		return content{}, err
	}
	system := rootfs(func(context.Context, func(int64)) (io.ReadCloser, error) {
		return io.NopCloser(fromStart(f)), nil
	}, size, func() { _ = f.Close() })
	if !fromArchive(first) {
		return system, nil
	}
	plain := f
	if packed {
		if plain, err = s.spool(ctx, f); err != nil {
			return content{}, err
		}
	}
	c, err := openArchive(ctx, plain)
	if errors.Is(err, errNoArchive) {
		c, err = system, nil
	}
	if err != nil && packed {
		_ = plain.Close()
	}
	c.close = func() { _, _ = f.Close(), plain.Close() }
	return c, err
}

// fromStart returns a reader of all of f that has a position of its own: a
// stream reads ahead in goroutines of its own, and would move that of f under
// the next reader.
func fromStart(f *os.File) io.Reader { return io.NewSectionReader(f, 0, math.MaxInt64) }

// firstName returns the name of a tar's first entry other than the root
// directory, and whether the tar is compressed.
func firstName(ctx context.Context, f *os.File) (name string, packed bool, err error) {
	st, err := newStream(ctx, fromStart(f), v1.Hash{}, func(int64) {})
	if err != nil {
		return "", false, err
	}
	defer st.close()
	tr := tar.NewReader(st)
	for name == "" || name == "." {
		h, err := tr.Next()
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return "", false, st.cause(fault.Wrap(fault.Image, err, "%s is not a tar of a root file system or of an image", filepath.Base(f.Name())))
		}
		name = path.Clean(h.Name)
	}
	return name, st.packed, nil
}

// fromArchive reports whether a tar whose first entry has this name may be the
// tar of an image. Thanks to it, a compressed root file system need not be
// unpacked to find that out.
func fromArchive(name string) bool {
	name, _, _ = strings.Cut(name, "/")
	switch name {
	case "blobs", indexFile, layoutFile, manifestFile, "repositories":
		return true
	}
	return isHex(strings.TrimPrefix(name, "sha256:"))
}

// isHex reports whether name begins with a sha256 digest.
func isHex(name string) bool {
	return len(name) >= 64 && strings.Trim(name[:64], "0123456789abcdef") == ""
}

// spool unpacks f into a file without a name, so that parts of it can be read.
func (s *Store) spool(ctx context.Context, f *os.File) (*os.File, error) {
	st, err := newStream(ctx, fromStart(f), v1.Hash{}, func(int64) {})
	if err != nil {
		return nil, err
	}
	defer st.close()
	st.room.check = s.c.Room
	file, err := s.unnamed()
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(file, st); err != nil {
		_ = file.Close()
		return nil, fault.Disk(st.cause(err), "unpack the image source")
	}
	return file, nil
}

// unnamed makes a file without a name, which is gone once it is closed, if the disk has
// room.
func (s *Store) unnamed() (*os.File, error) {
	if err := s.room(); err != nil {
		return nil, err
	}
	fd, err := unix.Open(s.layers.Path, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fault.Disk(err, "make a file for the image source")
	}
	return os.NewFile(uintptr(fd), "the source"), nil
}
