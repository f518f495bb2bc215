package wire

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/sockets"
)

// Dial returns a connection to a socket in dir, in blocking mode.
func Dial(dir *os.File, name string) (*Conn, error) {
	fd, err := sockets.Connect(dir, name)
	if err != nil {
		return nil, err
	}
	return NewConn(fd, name), nil
}

// DialPolled returns a connection to a socket in dir, in non-blocking mode. It
// is for calls that may wait long: they wait in Go's poller and block no thread.
func DialPolled(dir *os.File, name string) (*Conn, error) {
	fd, err := sockets.Connect(dir, name) // blocking, so that it waits if the listener's queue is full
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return NewConn(fd, name), nil
}

// Listener accepts connections, waiting in Go's poller.
type Listener struct {
	f  *os.File
	rc syscall.RawConn
}

// NewListener returns a listener on a listening socket, which it owns from then
// on.
func NewListener(fd int) (*Listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "listener")
	rc, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Listener{f, rc}, nil
}

// Accept waits for the next connection and returns it. After Close it always
// fails.
func (l *Listener) Accept() (*Conn, error) {
	for {
		var conn int
		var failed error
		err := l.rc.Read(func(fd uintptr) bool {
			conn, _, failed = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return !errors.Is(failed, unix.EAGAIN)
		})
		switch {
		case err != nil:
			return nil, err
		case failed == nil:
			return NewConn(conn, "peer"), nil
		case errors.Is(failed, unix.EMFILE), errors.Is(failed, unix.ENFILE), errors.Is(failed, unix.ENOMEM):
			time.Sleep(shortage) // the kernel does not report when there is room again
		}
		// After any other failure the peer has given up: take the next one.
	}
}

// shortage is the pause before the next try when descriptors or memory have run
// out.
const shortage = 5 * time.Millisecond

// Close closes the socket and ends Accept.
func (l *Listener) Close() error { return l.f.Close() }

// HungUp tells, without a Recv, whether the other side has closed the
// connection.
func (c *Conn) HungUp() bool { return hasHungUp(uintptr(c.FD())) }

func hasHungUp(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}

// Watch returns a channel that is closed when the peer hangs up, and a function
// that ends the watch. The socket must be in non-blocking mode, and nobody may
// call Recv until stop has returned.
func (c *Conn) Watch() (left <-chan struct{}, stop func()) {
	hungUp, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if rc, err := c.f.SyscallConn(); err == nil && rc.Read(hasHungUp) == nil {
			close(hungUp)
		}
	}()
	return hungUp, func() {
		_ = c.f.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = c.f.SetReadDeadline(time.Time{})
	}
}

// Peer returns the PID of the process at the other end of a connection.
func (c *Conn) Peer() (pid int, err error) {
	cred, err := unix.GetsockoptUcred(c.FD(), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}
