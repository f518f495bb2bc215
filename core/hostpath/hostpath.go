// Package hostpath opens paths of the host that a caller has named, and keeps
// them inside a directory if they must lie in one.
package hostpath

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrOutside says that a path does not lie in the directory that it must lie
// in, or that a link in it leads out of that directory.
var ErrOutside = errors.New("it leads out of the directory that it must be in")

// Open opens an absolute path with O_PATH. If within, an absolute directory, is
// not "", the path must lie in it. What is opened then lies in it too, wherever
// links in the path lead and even if they are changed meanwhile. Errors:
// ErrOutside, and those of open(2).
func Open(within, path string) (*os.File, error) {
	if within == "" {
		return os.OpenFile(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	rest, ok := Rel(within, path)
	if !ok {
		return nil, ErrOutside
	}
	root, err := os.OpenFile(within, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openIn(root, rest, path)
}

// openIn opens a path with root as its root directory. A link that leads out is
// followed inside root instead, where it most likely leads to nothing. When the
// open fails, openIn therefore finds out whether a link leads out or the path
// is only missing.
func openIn(root *os.File, rest, path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := Openat2(int(root.Fd()), rest, how)
	if err == nil {
		return os.NewFile(uintptr(fd), path), nil
	}
	how.Resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS
	if fd, beneath := Openat2(int(root.Fd()), rest, how); beneath == nil {
		_ = unix.Close(fd)
	} else if errors.Is(beneath, unix.EXDEV) || errors.Is(beneath, unix.ELOOP) {
		return nil, ErrOutside
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: err}
}

// Openat2 calls openat2(2) for a name that must not leave dir. It tries again
// on EAGAIN, which the kernel returns while something on the host is renamed or
// mounted, because it can't tell then whether a `..` has left dir.
func Openat2(dir int, name string, how unix.OpenHow) (int, error) {
	const tries = 100
	for range tries {
		fd, err := unix.Openat2(dir, name, &how)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

// Rel returns the part of a path that follows a directory. Both are absolute,
// and only their names are compared, so links are not followed. ok is false if
// the path does not lie in the directory.
func Rel(dir, path string) (rest string, ok bool) {
	rest, err := filepath.Rel(dir, path)
	if err != nil || rest == ".." || strings.HasPrefix(rest, "../") {
		return "", false
	}
	return rest, true
}
