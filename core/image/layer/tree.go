package layer

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
	"sandbox/core/hostpath"
)

// tree finds directories beneath root. It keeps the one used last open: the
// entries of a tar come directory by directory.
type tree struct {
	root  int
	dir   string // name of fd
	fd    int    // -1: none
	stale bool   // dir may be another directory by now
	left  int64  // entries still allowed
}

// parent opens the directory that name is in, made where a tar left it out, and
// gives name's last part. fd belongs to the tree and is good until the next
// call.
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

// existing is parent for a name that must be there; the caller closes fd.
func (t *tree) existing(name string) (fd int, base string, err error) {
	dir, base := split(name)
	if dir == "" {
		dir = "."
	}
	fd, err = t.open(dir)
	return fd, base, err
}

// open opens a directory beneath root. Symlinks on the way are followed while
// they stay beneath it, as layers that lean on `lib -> usr/lib` need it; one
// that leads out, or is absolute, fails with EXDEV.
func (t *tree) open(dir string) (int, error) {
	return hostpath.Openat2(t.root, dir, unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// makeAll makes the directories on the way to dir, and dir, as far as missing.
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
		return nil // what else it may be, open says
	}
	if err != nil {
		return err
	}
	return t.count()
}

// count takes one of the entries allowed.
func (t *tree) count() error {
	if t.left--; t.left < 0 {
		return fault.New(fault.Image, "the tar has too many entries")
	}
	return nil
}

// forget closes the directory in use.
func (t *tree) forget() {
	if t.fd >= 0 {
		_ = unix.Close(t.fd)
		t.fd = -1
	}
}

// openDir opens a directory by its one name, so that it can be changed.
func openDir(fd int, base string) (int, error) {
	return unix.Openat(fd, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func split(name string) (dir, base string) {
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)], name[i+1:]
}
