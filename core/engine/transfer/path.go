package transfer

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// resolve makes the kernel refuse every path through a magic link, such as
// /proc/1/root. A magic link leads directly to an open file, not by a name.
const resolve = unix.RESOLVE_NO_MAGICLINKS

func openAt(dir int, path string, flags uint64) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve})
}

// place is where a path leads: to a directory that exists, and from there
// through names that don't exist yet.
type place struct {
	dir     int
	missing []string
	owner   owner // of the directories that are made
}

// find follows the names of an absolute path as far as the directories exist,
// and returns where that ends.
func find(names []string) (place, error) {
	dir, err := openAt(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return place{}, err
	}
	for i, name := range names {
		next, err := openAt(dir, name, unix.O_PATH|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			return place{dir: dir, missing: names[i:]}, nil
		}
		_ = unix.Close(dir)
		if err != nil {
			return place{}, fmt.Errorf("%s: %w", "/"+strings.Join(names[:i+1], "/"), err)
		}
		dir = next
	}
	return place{dir: dir}, nil
}

// make makes the missing directories and returns a descriptor of the last one,
// which the caller owns. The place's own directory stays open.
func (p place) make() (int, error) {
	dir, err := unix.FcntlInt(uintptr(p.dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for _, name := range p.missing {
		err := unix.Mkdirat(dir, name, 0o755)
		if err == nil {
			err = p.owner.take(dir, name)
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			_ = unix.Close(dir)
			return -1, fmt.Errorf("make directory %s: %w", name, err)
		}
		next, err := openAt(dir, name, unix.O_PATH|unix.O_DIRECTORY)
		_ = unix.Close(dir)
		if err != nil {
			return -1, fmt.Errorf("make directory %s: %w", name, err)
		}
		dir = next
	}
	return dir, nil
}

func (p place) close() { _ = unix.Close(p.dir) }

// namesOf returns the names of an absolute path, without empty ones and ".".
func namesOf(path string) []string {
	var names []string
	for _, name := range strings.Split(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

// isDir tells whether a path leads to an existing directory.
func isDir(path string) bool {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}

// reopen opens the file that an O_PATH descriptor refers to.
func reopen(fd, flags int) (*os.File, error) {
	name := "/proc/self/fd/" + strconv.Itoa(fd)
	opened, err := unix.Open(name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(opened), name), nil
}
