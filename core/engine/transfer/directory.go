package transfer

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// makeDirectory makes a directory, and what is missing on its path, and sends its
// entry. created is false if it was there already.
func (r *records) makeDirectory(m wire.Move) (created bool, err error) {
	at, err := find(namesOf(m.Path))
	if err != nil {
		return false, notDirectory(err, m.Path)
	}
	defer at.close()
	if at.owner, err = ownerOf(m.Owner); err != nil {
		return false, err
	}
	dir, created, err := at.makeLast(m.Mode)
	if err != nil {
		return false, notDirectory(err, m.Path)
	}
	defer unix.Close(dir)
	return created, r.opened(dir, m.Path)
}

// makeLast makes the missing directories. The last one gets the mode, unless it
// is nil. It returns a descriptor of that one, which the caller owns, and whether
// the last one was made here.
func (p place) makeLast(mode *int) (dir int, created bool, err error) {
	if len(p.missing) == 0 {
		dir, err = p.make()
		return dir, false, err
	}
	last := len(p.missing) - 1
	above, err := place{p.dir, p.missing[:last], p.owner}.make()
	if err != nil {
		return -1, false, err
	}
	defer unix.Close(above)
	name, bits := p.missing[last], uint32(0o755)
	if mode != nil {
		bits = uint32(*mode)
	}
	err = unix.Mkdirat(above, name, bits)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, false, fmt.Errorf("make directory %s: %w", name, err)
	}
	if created = err == nil; created {
		if err := p.owner.take(above, name); err != nil {
			return -1, false, fmt.Errorf("make directory %s: %w", name, err)
		}
	}
	if dir, err = openAt(above, name, unix.O_PATH|unix.O_DIRECTORY); err != nil {
		return -1, false, fmt.Errorf("make directory %s: %w", name, err)
	}
	if created && mode != nil { // what the umask has taken away, and the set-id bits
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(dir), bits)
	}
	if err != nil {
		_ = unix.Close(dir)
		return -1, false, fmt.Errorf("make directory %s: %w", name, err)
	}
	return dir, created, nil
}

// notDirectory says what is in the way of a directory.
func notDirectory(err error, path string) error {
	if errors.Is(err, unix.ENOTDIR) {
		return fault.New(fault.InvalidArgument, "%s: a file that is no directory is in the way", path)
	}
	return err
}

// rename gives a file another path and sends its entry. It replaces a file that
// is there, and a directory only by another one and only if it is empty.
func (r *records) rename(from, to string) error {
	source, name, err := parent(from)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	dest, other, err := parent(to)
	if err != nil {
		return err
	}
	defer unix.Close(dest)
	if err := unix.Renameat(source, name, dest, other); err != nil {
		return notRenamed(err, from, to)
	}
	fd, err := unix.Openat(dest, other, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s, which was moved: %w", to, err)
	}
	defer unix.Close(fd)
	return r.opened(fd, to)
}

// notRenamed says why a file can't get another path, and what to do.
func notRenamed(err error, from, to string) error {
	why := ""
	switch {
	case errors.Is(err, unix.EXDEV):
		why = "it would move to another file system, such as a volume, or is a directory of the image: copy it, and remove it"
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		why = "that directory is not empty: remove it first"
	case errors.Is(err, unix.EISDIR):
		why = "that is a directory: name the file's own new path"
	case errors.Is(err, unix.ENOTDIR):
		why = "that is a file, which a directory can't replace"
	case errors.Is(err, unix.EBUSY):
		why = "one of them is a mount point"
	case errors.Is(err, unix.EINVAL):
		why = "a directory can't be moved into itself"
	default:
		return fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	return fault.New(fault.InvalidArgument, "move %s to %s: %s", from, to, why)
}
