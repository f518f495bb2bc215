package transfer

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// newMode is the mode of a new file if the upload has none.
const newMode = 0o644

// put writes the bytes of in to a file. It writes them to a temporary file in
// the nearest existing directory on the path, and renames that to its final
// place once it is complete. Until then put makes nothing but the temporary
// file, which is removed on failure.
func put(m wire.Move, in *os.File, committed func() (wire.Commit, error)) (wire.Moved, error) {
	names, file := namesOf(m.Path), m.Name
	if !strings.HasSuffix(m.Path, "/") && !isDir(m.Path) {
		file, names = names[len(names)-1], names[:len(names)-1]
	}
	if file == "" || file == "." || file == ".." || strings.Contains(file, "/") {
		return wire.Moved{}, fault.New(fault.InvalidArgument, "%q can't be the name of a file", file)
	}
	at, err := find(names)
	if err != nil {
		return wire.Moved{}, err
	}
	defer at.close()
	if at.owner, err = ownerOf(m.Owner); err != nil {
		return wire.Moved{}, err
	}
	if slices.Contains(at.missing, "..") {
		return wire.Moved{}, fault.New(fault.FileNotFound, "%s: a directory before .. is missing", m.Path)
	}
	if made(at.dir) {
		return wire.Moved{}, fault.New(fault.InvalidArgument, "%s: files can't be made in it", m.Path)
	}
	if len(at.missing) == 0 { // fail now rather than after gigabytes have come
		if _, err := replaced(at.dir, file, at.owner); err != nil {
			return wire.Moved{}, err
		}
	}
	part, err := newPart(at.dir)
	if err != nil {
		return wire.Moved{}, fmt.Errorf("make a file: %w", err)
	}
	defer part.remove()
	part.owner = at.owner
	size, err := move(int(part.file.Fd()), int(in.Fd()), -1)
	if err != nil {
		return wire.Moved{}, fmt.Errorf("write the file: %w", err)
	}
	last, err := committed()
	if err != nil {
		return wire.Moved{}, err
	}
	dir, err := at.make()
	if err != nil {
		return wire.Moved{}, err
	}
	defer unix.Close(dir)
	if err := part.become(dir, file, cmp.Or(last.Mode, m.Mode)); err != nil {
		return wire.Moved{}, err
	}
	return wire.Moved{Path: path.Join("/", path.Join(names...), file), Size: size}, nil
}

// part is a file that is being written.
type part struct {
	dir   int
	name  string
	file  *os.File
	guard *guard
	owner owner // of a file that replaces none
}

func newPart(dir int) (*part, error) {
	p := &part{dir: dir, name: ".sandbox-" + rand.Text(), guard: newGuard()}
	fd, err := unix.Openat(dir, p.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		p.guard.end()
		return nil, err
	}
	p.file = os.NewFile(uintptr(fd), p.name)
	p.guard.begin(func() { _ = unix.Unlinkat(dir, p.name, 0) })
	return p, nil
}

// remove removes the temporary file, unless it has been renamed.
func (p *part) remove() {
	_ = p.file.Close()
	_ = unix.Unlinkat(p.dir, p.name, 0)
	p.guard.end()
}

// become renames the temporary file to its final place. It takes over the mode of
// the file that it replaces if mode is nil, and as the box's root its owner too.
// Another user can't give files away: it owns what it replaces from then on, which
// it must have the right to write.
func (p *part) become(dir int, name string, mode *int) error {
	old, err := replaced(dir, name, p.owner)
	if err != nil {
		return err
	}
	if mode != nil {
		old.Mode = uint32(*mode)
	}
	fd := int(p.file.Fd())
	if os.Geteuid() == 0 {
		err = unix.Fchown(fd, int(old.Uid), int(old.Gid))
	} else if old.Uid != uint32(os.Geteuid()) {
		err = mayWrite(dir, name)
		old.Mode &^= unix.S_ISUID | unix.S_ISGID // they were the other owner's
	}
	if err == nil { // after the owner, as a change of owner clears the set-id bits
		err = unix.Fchmod(fd, old.Mode&0o7777)
	}
	if err == nil {
		err = unix.Renameat(p.dir, p.name, dir, name)
	}
	if errors.Is(err, unix.EBUSY) {
		return fault.New(fault.InvalidArgument, "%s is a mount point, which can't be replaced", name)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

// mayWrite fails without the right to write a file.
func mayWrite(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// replaced returns the attributes of the file that a new file will replace. If
// there is none, or a symbolic link, it returns the attributes of a new file. It
// fails if the name is a directory or anything else that may not be replaced.
func replaced(dir int, name string, by owner) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	kind := st.Mode & unix.S_IFMT
	switch {
	case errors.Is(err, unix.ENOENT), err == nil && kind == unix.S_IFLNK:
		uid, gid := by.ids()
		return unix.Stat_t{Mode: newMode, Uid: uid, Gid: gid}, nil
	case err != nil:
		return st, fmt.Errorf("%s: %w", name, err)
	case kind == unix.S_IFDIR:
		return st, fault.New(fault.IsDirectory, "%s is a directory", name)
	case kind != unix.S_IFREG:
		return st, fault.New(fault.InvalidArgument, "%s is not a regular file and is not replaced", name)
	}
	return st, nil
}
