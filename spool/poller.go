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

// wait returns which descriptors can be read. Unless block is set, there may be
// none. Errors: os.ErrDeadlineExceeded when there is none at the time of until, or
// after it.
func (p *poller) wait(block bool) (ready [sources]bool, err error) {
	var n int
	var failed error
	look := func(fd uintptr) bool {
		ready, n, failed = look(int(fd))
		return n > 0 || failed != nil
	}
	if block {
		err = p.rc.Read(look)
	}
	if !block || errors.Is(err, os.ErrDeadlineExceeded) { // which Read returns without looking
		if look(p.f.Fd()) {
			err = nil
		}
	}
	return ready, errors.Join(err, failed)
}

// look returns which descriptors of an epoll descriptor can be read now, and how
// many they are.
func look(epoll int) (ready [sources]bool, n int, err error) {
	var events [sources]unix.EpollEvent
	n, err = unix.EpollWait(epoll, events[:], 0)
	if errors.Is(err, unix.EINTR) {
		err = nil
	}
	for _, e := range events[:max(n, 0)] {
		ready[e.Fd] = true
	}
	return ready, n, err
}

// until sets the time at which wait gives up. With the zero time, wait never
// gives up.
func (p *poller) until(t time.Time) { _ = p.f.SetReadDeadline(t) }

func (p *poller) close() { _ = p.f.Close() }
