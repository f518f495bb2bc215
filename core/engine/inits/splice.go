package inits

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// WriteTo moves the rest of the file to w. To a socket whose descriptor w shows, as
// net/http's does below a reply of known size, it is spliced: the bytes stay in the
// kernel, and a file's own pages go out without a copy. Errors: those of Read as
// faults; those of w as they are.
func (d *download) WriteTo(w io.Writer) (n int64, err error) {
	if socket, ok := w.(syscall.Conn); ok && d.left > 0 {
		n, err = d.spliceTo(socket)
	}
	if err != nil || d.left == 0 {
		return n, err
	}
	buf := make([]byte, transferBuffer)
	rest, err := io.CopyBuffer(w, struct{ io.Reader }{d}, buf)
	return n + rest, err
}

// spliceTo splices until the file or its pipe has ended, or this kind of socket
// can't take it. What it leaves is there for Read, which tells why a file ended early.
func (d *download) spliceTo(socket syscall.Conn) (n int64, err error) {
	to, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	for d.left > 0 {
		moved, err := d.spliceOnce(to)
		d.left -= moved
		n += moved
		switch {
		case errors.Is(err, unix.EINVAL) && n == 0:
			return 0, nil
		case err != nil:
			return n, err
		case moved == 0:
			return n, nil
		}
	}
	return n, nil
}

// spliceOnce waits until the pipe has bytes and the socket has room, and moves what
// it can. It returns 0 at the end of the pipe.
func (d *download) spliceOnce(to syscall.RawConn) (moved int64, err error) {
	from, err := d.t.data.SyscallConn()
	if err != nil {
		return 0, d.t.broken(err)
	}
	if err := from.Read(readable); err != nil {
		return 0, d.t.broken(err)
	}
	most := int(min(d.left, transferPipe))
	var full error
	gone := from.Control(func(pipe uintptr) {
		full = to.Write(func(socket uintptr) bool {
			moved, err = unix.Splice(int(pipe), nil, int(socket), nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
			return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
		})
	})
	if gone != nil {
		return 0, d.t.broken(gone)
	}
	return max(moved, 0), errors.Join(full, os.NewSyscallError("splice", err))
}

// readable reports whether a pipe has bytes, or has ended.
func readable(pipe uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pipe), Events: unix.POLLIN}}, 0)
	return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
}
