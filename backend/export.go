package backend

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

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

// replace writes a new file and gives it the name path if that has worked.
func replace(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return fault.Wrap(fault.InvalidArgument, err, "write the archive")
	}
	err = write(f)
	if err == nil {
		err = fault.Disk(f.Chmod(0o644), "write the archive")
	}
	if closeErr := f.Close(); err == nil {
		err = fault.Disk(closeErr, "write the archive")
	}
	if err == nil {
		err = fault.Disk(os.Rename(f.Name(), path), "write the archive")
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
