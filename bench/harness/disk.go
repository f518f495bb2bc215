package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk is an empty file system of its own. On an ext4 that is in use, making
// files is slower for minutes after many files were deleted, no matter by which
// process.
type Disk struct{ image, Dir string }

// diskSize is more than any measurement writes. The file is sparse.
const diskSize = 64 << 30

// NewDisk makes a disk in dir. The caller closes it even on failure.
func NewDisk(dir string) (Disk, error) {
	// The file system is initialised completely here, so that the kernel
	// does not do that in the background while contestants run.
	return newDisk(dir, "disk", "mkfs.ext4", "-q", "-i", "65536", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0")
}

// NewSharingDisk makes a disk in dir whose files can share blocks (reflink). The caller
// closes it even on failure.
func NewSharingDisk(dir string) (Disk, error) {
	return newDisk(dir, "sharing", "mkfs.xfs", "-q", "-m", "reflink=1")
}

// newDisk makes a disk with a command that gets the path of its image.
func newDisk(dir, name string, format ...string) (Disk, error) {
	d := Disk{filepath.Join(dir, name+".img"), filepath.Join(dir, name)}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		return d, err
	}
	if err := errors.Join(os.Truncate(d.image, diskSize), os.Mkdir(d.Dir, 0o700)); err != nil {
		return d, err
	}
	for _, args := range [][]string{
		append(format, d.image),
		{"mount", "-o", "loop", d.image, d.Dir},
	} {
		if said, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return d, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said)
		}
	}
	return d, nil
}

// Sync writes to the disk what was written to the file system, so that the next
// contestant does not pay for the one before.
func (d Disk) Sync() error {
	f, err := os.Open(d.Dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// Close unmounts the file system, and everything that a contestant may have
// mounted in it.
func (d Disk) Close() error {
	if err := unix.Unmount(d.Dir, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount %s: %w", d.Dir, err)
	}
	return errors.Join(os.Remove(d.image), os.Remove(d.Dir))
}
