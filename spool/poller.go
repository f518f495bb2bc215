package spool

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for several descriptors of an exec at once. It is an epoll
// descriptor that is itself watched by Go's poller, so that a silent exec costs
// a goroutine but no thread.
type poller struct {
	f  *os.File
	rc syscall.RawConn
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // otherwise Go does not poll it
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

// add makes wait report fd at the index place of its result.
func (p *poller) add(fd int, place source) error {
	return unix.EpollCtl(int(p.f.Fd()), unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(place)})
}

// remove must be called before fd is closed: the box's init has the same pipe
// open, so epoll would continue to report it.
func (p *poller) remove(fd int) {
	_ = unix.EpollCtl(int(p.f.Fd()), unix.EPOLL_CTL_DEL, fd, nil)
}

// wait returns which descriptors can be read. Errors: os.ErrDeadlineExceeded.
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

// until sets the time at which wait gives up. With the zero time, wait never
// gives up.
func (p *poller) until(t time.Time) { _ = p.f.SetReadDeadline(t) }

func (p *poller) close() { _ = p.f.Close() }
