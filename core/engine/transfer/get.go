package transfer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// get sends a regular file, with as many bytes as it has when it is opened. It
// fails if the file becomes shorter while it is read.
func get(m wire.Move, out *os.File, announce func(int64) error) (wire.Moved, error) {
	fd, st, err := look(m.Path)
	if err != nil {
		return wire.Moved{}, err
	}
	defer unix.Close(fd)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return wire.Moved{}, fault.New(fault.IsDirectory, "%s is a directory: ask for it as a tar", m.Path)
	default:
		return wire.Moved{}, fault.New(fault.InvalidArgument, "%s is not a regular file", m.Path)
	}
	if made(fd) {
		return wire.Moved{}, fault.New(fault.InvalidArgument, "%s is written by the kernel while it is read, and has no size: read it with a command, such as cat", m.Path)
	}
	f, err := reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return wire.Moved{}, fmt.Errorf("%s: %w", m.Path, err)
	}
	defer f.Close()
	if err := announce(st.Size); err != nil {
		return wire.Moved{}, err
	}
	n, err := move(int(out.Fd()), int(f.Fd()), st.Size)
	if err == nil && n < st.Size {
		err = fault.New(fault.InvalidArgument, "%s became shorter while it was read", m.Path)
	}
	return wire.Moved{Size: n}, errors.Join(err, out.Close())
}

// look opens the file that a path leads to with O_PATH, which has no effect on
// the file, and returns its descriptor and attributes.
func look(path string) (fd int, st unix.Stat_t, err error) {
	fd, err = openAt(unix.AT_FDCWD, path, unix.O_PATH)
	if errors.Is(err, unix.ENOTDIR) {
		err = unix.ENOENT
	}
	if err != nil {
		return -1, st, fmt.Errorf("%s: %w", path, err)
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, st, fmt.Errorf("%s: %w", path, err)
	}
	return fd, st, nil
}

// made tells whether the file is on a file system whose contents the kernel
// makes up as they are read, such as /proc. Sizes mean nothing there, and some
// files never end.
func made(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	return slices.Contains([]int64{
		unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.DEVPTS_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	}, int64(st.Type)) //nolint:unconvert // 32 bits on some machines
}

// chunk is the largest number of bytes that one splice moves.
const chunk = 1 << 20

// move moves up to n bytes, or all if n is -1, between a file and a pipe, and
// returns how many it moved. The bytes stay in the kernel if the file system
// supports that.
func move(to, from int, n int64) (int64, error) {
	var moved int64
	for n < 0 || moved < n {
		want := chunk
		if n >= 0 {
			want = int(min(chunk, n-moved))
		}
		got, err := unix.Splice(from, nil, to, nil, want, unix.SPLICE_F_MOVE)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL) && moved == 0:
			return moveByHand(to, from, n)
		case err != nil || got == 0:
			return moved, err
		}
		moved += got
	}
	return moved, nil
}

type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	n, err := unix.Read(int(d), p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// Write writes all of p. The kernel may take less at once, as of a write to a full pipe
// that a signal interrupts, and to a disk that becomes full: the next write tells why.
func (d descriptor) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := unix.Write(int(d), p[written:])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return written, err
		}
		written += max(n, 0)
	}
	return written, nil
}

func moveByHand(to, from int, n int64) (int64, error) {
	var source io.Reader = descriptor(from)
	if n >= 0 {
		source = io.LimitReader(source, n)
	}
	return io.Copy(descriptor(to), source)
}
