package sockets

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenDir opens a directory to reach sockets in.
func OpenDir(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Listen makes a socket in dir that listens, and that its owner alone may
// connect to. It blocks and is close-on-exec; it is the caller's to close, and
// its name stays then. Errors: EADDRINUSE if the name is taken.
func Listen(dir *os.File, name string) (fd int, err error) {
	fd, err = open()
	if err != nil {
		return -1, err
	}
	// The kernel gives the name the mode of the socket, so that at no moment
	// anybody else can connect.
	if err = unix.Fchmod(fd, 0o600); err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: Address(dir, name)})
	}
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN) // as many may queue as the kernel allows
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("listen on the socket %s: %w", name, err)
	}
	return fd, nil
}

// Replace is Listen that first removes what has the name.
func Replace(dir *os.File, name string) (fd int, err error) {
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return -1, fmt.Errorf("replace the socket %s: %w", name, err)
	}
	return Listen(dir, name)
}

// Connect connects to the socket name in dir, and waits while its queue is
// full. The descriptor blocks and is close-on-exec; it is the caller's to close.
func Connect(dir *os.File, name string) (fd int, err error) {
	fd, err = open()
	if err != nil {
		return -1, err
	}
	for {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: Address(dir, name)})
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("connect to the socket %s: %w", name, err)
	}
	return fd, nil
}

func open() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}
