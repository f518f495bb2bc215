package transfer

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/account"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// operate works on files in their places. The records go to out, which it closes.
func operate(m wire.Move, out *os.File) (wire.Moved, error) {
	r := records{to: bufio.NewWriterSize(out, tarBuffer)}
	done, err := r.operate(m)
	if err == nil {
		err = r.to.Flush()
	}
	return done, errors.Join(err, out.Close())
}

// records writes the records of an operation.
type records struct {
	to      *bufio.Writer
	record  []byte
	sized   []byte
	bytes   int // so far
	users   map[uint32]string
	groups  map[uint32]string
	removed int64
}

func (r *records) operate(m wire.Move) (wire.Moved, error) {
	switch m.Operation {
	case wire.Stat:
		return wire.Moved{}, r.stat(m.Path)
	case wire.List:
		more, err := r.list(m)
		return wire.Moved{More: more}, err
	case wire.MakeDirectory:
		created, err := r.makeDirectory(m)
		return wire.Moved{Created: created}, err
	case wire.Rename:
		return wire.Moved{}, r.rename(m.Path, m.To)
	case wire.Remove:
		err := r.remove(m.Path, m.Recursive)
		return wire.Moved{Removed: r.removed}, err
	case wire.User:
		return lookUpUser(m.Name, m.Make)
	case wire.Watch:
		return wire.Moved{}, r.watch(m.Path, m.Recursive)
	}
	return wire.Moved{}, fault.New(fault.Unsupported, "the init of this box is too old for %q: stop the box and start it again", m.Operation)
}

// stat sends the entry of a file. It does not follow a link that path leads to.
func (r *records) stat(path string) error {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_PATH|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) {
		err = unix.ENOENT
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	return r.opened(fd, path)
}

// opened sends the entry of a file that is open.
func (r *records) opened(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	target := ""
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		target = readLink(fd, "")
	}
	return r.send(r.entry("", target, &st))
}

// entry returns the entry of a file. It reads the box's accounts once.
func (r *records) entry(path, target string, st *unix.Stat_t) wire.Entry {
	if r.users == nil {
		r.users, r.groups = account.Names(account.Users), account.Names(account.Groups)
	}
	return wire.Entry{
		Path: path, Target: target, Owner: brief(r.users[st.Uid]), Group: brief(r.groups[st.Gid]),
		Mode: st.Mode, UID: st.Uid, GID: st.Gid, Size: st.Size, Modified: int64(st.Mtim.Sec), Nanosecond: uint32(st.Mtim.Nsec), //nolint:unconvert // 32 bits on some machines
	}
}

// maxName bounds the name of a user or group in bytes.
const maxName = 256

// brief returns a name that fits a record; one that is longer counts as none.
func brief(name string) string {
	if len(name) > maxName {
		return ""
	}
	return name
}

// send writes the record of an entry.
func (r *records) send(e wire.Entry) error {
	r.record = e.Append(r.record[:0])
	r.sized = wire.AppendRecord(r.sized[:0], r.record)
	r.bytes += len(r.sized)
	_, err := r.to.Write(r.sized)
	return err
}

// alive tells the host that the operation goes on.
func (r *records) alive() error {
	r.sized = wire.AppendRecord(r.sized[:0], nil)
	_, err := r.to.Write(r.sized)
	return errors.Join(err, r.to.Flush())
}

// readLink returns where a symbolic link leads, or "" if it is none any more.
func readLink(dir int, name string) string {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, target)
	if err != nil {
		return ""
	}
	return string(target[:n])
}

// parent opens the directory that a path lies in, and returns the path's last
// name. Errors: InvalidArgument for the root, which lies in none.
func parent(path string) (dir int, name string, err error) {
	names := namesOf(path)
	if len(names) == 0 {
		return -1, "", fault.New(fault.InvalidArgument, "/ can't be moved or removed")
	}
	above := "/" + strings.Join(names[:len(names)-1], "/")
	dir, err = openAt(unix.AT_FDCWD, above, unix.O_PATH|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOTDIR) {
		err = unix.ENOENT
	}
	if err != nil {
		return -1, "", fmt.Errorf("%s: %w", above, err)
	}
	return dir, names[len(names)-1], nil
}
