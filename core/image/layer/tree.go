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
// missing.
func (t *tree) makeAll(dir string) error {
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if err := t.makeOne(dir[:i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) makeOne(dir string) error {
	fd, base, err := t.existing(dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Mkdirat(fd, base, 0o755)
	if errors.Is(err, unix.EEXIST) {
		return nil // open reports if it is not a directory
	}
	if err != nil {
		return err
	}
	if err := t.later(dir, unix.Timespec{}); err != nil {
		return err
	}
	return t.count()
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
