package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// disk is an empty file system. On one that is in use, ext4 is slower to make
// files for minutes after many were deleted, whoever did that.
type disk struct{ image, dir string }

// diskSize is more than any measurement writes; the file is sparse.
const diskSize = 64 << 30

func newDisk(b *bench) (disk, error) {
	d := disk{filepath.Join(b.dir, "disk.img"), filepath.Join(b.dir, "disk")}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		return d, err
	}
	if err := errors.Join(os.Truncate(d.image, diskSize), os.Mkdir(d.dir, 0o700)); err != nil {
		return d, err
	}
	for _, args := range [][]string{
		// Nothing is left to be made ready while contestants run.
		{"mkfs.ext4", "-q", "-i", "65536", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", d.image},
		{"mount", "-o", "loop", d.image, d.dir},
	} {
		if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return d, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said)
		}
	}
	return d, nil
}

// sync writes to the disk what was written to the file system, so that the
// next one does not pay for the one before.
func (d disk) sync() error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// close unmounts the file system, with what a contestant may have mounted in it.
func (d disk) close() error {
	if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", d.dir, err)
	}
	return errors.Join(os.Remove(d.image), os.Remove(d.dir))
}
