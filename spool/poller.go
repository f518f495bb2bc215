package spool

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for several descriptors of an exec at once. It is an epoll
// inside Go's own: an exec that is silent costs a goroutine and no thread.
type poller struct {
	f  *os.File
	rc syscall.RawConn
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go polls it
		_ = unix.Close(fd)
		return nil, err
	}
	p := &poller{f: os.NewFile(uintptr(fd), "epoll")}
	if p.rc, err = p.f.SyscallConn(); err != nil {
		_ = p.f.Close()
		return nil, err
	}
	return p, nil
}

// add makes wait tell of fd by its place in what wait gives.
func (p *poller) add(fd int, place source) error {
	return unix.EpollCtl(int(p.f.Fd()), unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(place)})
}

// remove must come before fd is closed: init has the same pipe open, and epoll
// would go on to tell of it.
func (p *poller) remove(fd int) {
	_ = unix.EpollCtl(int(p.f.Fd()), unix.EPOLL_CTL_DEL, fd, nil)
}

// wait returns what can be read. Errors: os.ErrDeadlineExceeded.
func (p *poller) wait() (ready [sources]bool, err error) {
	var events [sources]unix.EpollEvent
	var n int
	var failed error
	err = p.rc.Read(func(fd uintptr) bool {
		n, failed = unix.EpollWait(int(fd), events[:], 0)
		if errors.Is(failed, unix.EINTR) {
			n, failed = 0, nil
		}
		return n > 0 || failed != nil
	})
	if err = errors.Join(err, failed); err != nil {
		return ready, err
	}
	for _, e := range events[:n] {
		ready[e.Fd] = true
	}
	return ready, nil
}

// until bounds wait; the zero time does not.
func (p *poller) until(t time.Time) { _ = p.f.SetReadDeadline(t) }

func (p *poller) close() { _ = p.f.Close() }
