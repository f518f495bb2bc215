package layer

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/hostpath"
)

// tree finds directories beneath root. It keeps the one used last open, because
// the entries of a tar are mostly ordered by directory.
type tree struct {
	root  int
	dir   string // the name of fd's directory
	fd    int    // -1 if no directory is open
	stale bool   // dir may refer to another directory by now
	left  int64  // entries that are still allowed

	dirs    []dir // their times are set last, because making an entry changes them
	pending int   // total length of the names in dirs
}

type dir struct {
	name  string
	mtime unix.Timespec
}

// later records a directory whose time must be set at the end.
func (t *tree) later(name string, mtime unix.Timespec) error {
	if t.pending += len(name); t.pending > maxPending {
		return fault.New(fault.Image, "the tar holds too much: names of directories of over %d bytes", maxPending)
	}
	t.dirs = append(t.dirs, dir{name, mtime})
	return nil
}

// parent opens the directory that contains name, and makes it if the tar left
// it out. It returns the last part of name as base. fd belongs to the tree and
// is valid until the next call.
func (t *tree) parent(name string) (fd int, base string, err error) {
	dir, base := split(name)
	if dir == "" {
		return t.root, base, nil
	}
	if t.fd >= 0 && t.dir == dir && !t.stale {
		return t.fd, base, nil
	}
	fd, err = t.open(dir)
	if errors.Is(err, unix.ENOENT) {
		if err = t.makeAll(dir); err == nil {
			fd, err = t.open(dir)
		}
	}
	if err != nil {
		return -1, "", err
	}
	t.forget()
	t.fd, t.dir, t.stale = fd, dir, false
	return fd, base, nil
}

// existing is like parent for a name whose directory must exist already. The
// caller closes fd.
func (t *tree) existing(name string) (fd int, base string, err error) {
	dir, base := split(name)
	if dir == "" {
		dir = "."
	}
	fd, err = t.open(dir)
	return fd, base, err
}

// open opens a directory beneath root. Symlinks on the way are followed as long
// as they stay beneath root, because layers rely on links such as `lib ->
// usr/lib`. A symlink that leads out, or is absolute, fails with EXDEV.
func (t *tree) open(dir string) (int, error) {
	return hostpath.Openat2(t.root, dir, unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// makeAll makes dir and the directories on the way to it, as far as they are
// missing. It begins at the deepest one that is there: a tar with ever deeper names
// would otherwise cost the cube of their depth.
func (t *tree) makeAll(dir string) error {
	there, fd, err := dir, -1, error(unix.ENOENT)
	for there != "" && errors.Is(err, unix.ENOENT) {
		fd, there, err = t.above(there)
	}
	for err == nil && there != dir {
		base, _, _ := strings.Cut(strings.TrimPrefix(dir[len(there):], "/"), "/")
		there = strings.TrimPrefix(there+"/"+base, "/")
		var made bool
		if fd, made, err = t.makeOne(fd, base, there); err == nil && !made {
			break // open reports if it is not a directory
		}
	}
	if fd >= 0 {
		_ = unix.Close(fd)
	}
	return err
}

// above opens the directory that name is in.
func (t *tree) above(name string) (fd int, dir string, err error) {
	fd, _, err = t.existing(name)
	dir, _ = split(name)
	return fd, dir, err
}

// makeOne makes the directory base, whose whole name is name, in the directory at,
// which it closes. It returns the new one opened, or that there is something already.
func (t *tree) makeOne(at int, base, name string) (fd int, made bool, err error) {
	defer unix.Close(at)
	err = unix.Mkdirat(at, base, 0o755)
	if errors.Is(err, unix.EEXIST) {
		return -1, false, nil
	}
	if err == nil {
		err = errors.Join(t.later(name, unix.Timespec{}), t.count())
	}
	if err == nil {
		fd, err = unix.Openat(at, base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return -1, false, err
	}
	return fd, true, nil
}

// count counts one entry against those that are allowed.
func (t *tree) count() error {
	if t.left--; t.left < 0 {
		return fault.New(fault.Image, "the tar has too many entries")
	}
	return nil
}

// forget closes the directory that is kept open.
func (t *tree) forget() {
	if t.fd >= 0 {
		_ = unix.Close(t.fd)
		t.fd = -1
	}
}

// openDir opens a directory by its single name, so that its attributes can be
// changed.
func openDir(fd int, base string) (int, error) {
	return unix.Openat(fd, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func split(name string) (dir, base string) {
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)], name[i+1:]
}
