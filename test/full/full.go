// Package full fills disks for tests.
package full

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Take makes f, a file that is open for writing, as large as its disk has room now, to
// within 4 KiB. Errors: those of fallocate but for the end of the room.
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
