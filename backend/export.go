package backend

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/image"
)

// ExportOptions are those of the image store.
type ExportOptions = image.ExportOptions

// PushOptions are those of the image store.
type PushOptions = image.PushOptions

// ExportImageTo exports an image of on into a file of this host. A regular file of
// that name is replaced once the new one is whole; a failure leaves what was
// there. Errors: those of [Boxes.ExportImage], InvalidArgument (the path can't be
// written to).
func ExportImageTo(ctx context.Context, on Boxes, ref, path string, o ExportOptions) error {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() && !st.IsDir() { // a FIFO or a device takes it as it comes
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fault.Wrap(fault.InvalidArgument, err, "write the archive")
		}
		return errors.Join(on.ExportImage(ctx, ref, f, o), f.Close())
	}
	if err == nil && st.IsDir() {
		return fault.New(fault.InvalidArgument, "%s is a directory, want the name of a file", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.InvalidArgument, err, "write the archive")
	}
	return replace(path, func(f *os.File) error { return on.ExportImage(ctx, ref, f, o) })
}

// replace writes a new file and gives it the name path if that has worked. Until then it has
// no name, where the file system can do that: if this process is killed, nothing is left.
func replace(path string, write func(*os.File) error) error {
	f, err := newFile(path)
	if err != nil {
		return fault.Wrap(fault.InvalidArgument, err, "write the archive")
	}
	err = write(f)
	if err == nil {
		err = fault.Disk(errors.Join(f.Chmod(0o644), name(f, path)), "write the archive")
	}
	if closed := f.Close(); err == nil {
		err = fault.Disk(closed, "write the archive")
	}
	if err != nil {
		_ = os.Remove(f.Name()) // which it may not have yet
	}
	return err
}

// newFile makes a file in the directory of path, without a name if that works.
func newFile(path string) (*os.File, error) {
	dir := filepath.Dir(path)
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil { // a file system without them, or a directory that tells better below what is wrong
		return os.CreateTemp(dir, filepath.Base(path)+".part-*")
	}
	return os.NewFile(uintptr(fd), path+".part-"+rand.Text()), nil
}

// name gives a file the name path, which another one may have. The kernel gives a file
// without a name only a name that is free, so it gets another one first for an instant.
func name(f *os.File, path string) error {
	self := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	err := unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, f.Name(), unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, fs.ErrExist) { // it has that name from the beginning
		return err
	}
	return os.Rename(f.Name(), path)
}
