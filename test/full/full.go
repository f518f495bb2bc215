// Package full fills disks for tests.
package full

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Take grows f, which is open for writing, until its disk has less than 4 KiB left. It
// may miss room that others free meanwhile. It returns the errors of stat and fallocate,
// but not the one that says that the disk is full.
func Take(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for size, piece := info.Size(), int64(64<<20); piece >= 4096; {
		switch err := unix.Fallocate(int(f.Fd()), 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
	return nil
}
