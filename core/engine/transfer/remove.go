package transfer

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

const (
	// maxTries is how often a directory is emptied that others fill meanwhile.
	maxTries = 16
	// signOfLife is how many removed files there are between two signs of life.
	signOfLife = 1000
)

// remove removes a file or a directory; one that is not empty only if recursive.
// It follows no link, and removes nothing in another file system that is mounted
// below the path. What was removed before a failure is gone.
func (r *records) remove(path string, recursive bool) error {
	dir, name, err := parent(path)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	err = unix.Unlinkat(dir, name, 0)
	if isDirectory(err, dir, name) {
		if err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); full(err) && recursive {
			err = r.tree(dir, name)
		}
	}
	switch {
	case full(err) && !recursive:
		return fault.New(fault.InvalidArgument, "%s is a directory that is not empty: recursive removes it with all that is in it", path)
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.EBUSY):
		return fault.New(fault.InvalidArgument, "%s is or has a mount point, such as a volume, which is not removed", path)
	case err != nil:
		return fmt.Errorf("remove %s: %w", path, err)
	}
	r.removed++
	return nil
}

// isDirectory tells whether a file could not be unlinked because it is a
// directory. The kernel may say of one without the right to remove it that the
// right is missing.
func isDirectory(err error, dir int, name string) bool {
	if errors.Is(err, unix.EISDIR) {
		return true
	}
	var st unix.Stat_t
	return errors.Is(err, unix.EPERM) && unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

func full(err error) bool { return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) }

// tree removes a directory with all that is in it. It goes from each directory to
// those in it by descriptors, so that nobody can lead it elsewhere by putting a
// link in the place of a directory.
func (r *records) tree(dir int, name string) error {
	for tries := 1; ; tries++ {
		fd, err := unix.Openat2(dir, name, &unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: resolve | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV,
		})
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			return unix.Unlinkat(dir, name, 0) // something else has taken the name
		}
		if err != nil {
			return err
		}
		if err := r.empty(os.NewFile(uintptr(fd), name)); err != nil {
			return err
		}
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		if !full(err) || tries == maxTries {
			return err
		}
	}
}

// empty removes all that it finds in a directory, and closes it.
func (r *records) empty(dir *os.File) error {
	defer dir.Close()
	fd := int(dir.Fd())
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		for _, name := range names {
			if err := r.inside(fd, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if ended(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// inside removes a file in a directory that is to be empty. One that others have
// removed counts as removed by them.
func (r *records) inside(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if isDirectory(err, dir, name) {
		err = r.tree(dir, name)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.removed++; r.removed%signOfLife == 0 {
		return r.alive()
	}
	return nil
}
