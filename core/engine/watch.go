package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/process"
	"sandbox/core/fault"
)

// Changes calls changed once at the beginning, and then whenever boxes of the
// home were created, removed or put into another state by any process, until ctx
// ends. One call may stand for several changes, and no change is left out.
// removed is false if no box was removed since the previous call. Errors:
// Storage, ResourceExhausted (the host has no inotify watch left).
func (c *Client) Changes(ctx context.Context, changed func(removed bool)) error {
	if err := os.MkdirAll(c.records.Path, 0o700); err != nil {
		return fault.Disk(err, "make the directory of boxes")
	}
	fd, err := newInotify(c.records.Path, unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO)
	if err != nil {
		return fault.Wrap(fault.ResourceExhausted, err, "watch the boxes of the home")
	}
	f := os.NewFile(uintptr(fd), "inotify")
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })()
	changed(true) // a box may have been removed before the watch was set up
	for buf := make([]byte, 64<<10); ; {
		n, err := f.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return nil // ctx has ended
		}
		if err != nil {
			return fault.Wrap(fault.Internal, err, "watch the boxes of the home")
		}
		if found, removed := boxEvents(buf[:n]); found {
			changed(removed)
		}
	}
}

// boxEvents tells whether events that were read from an inotify descriptor are
// about records of boxes, and whether one of these was removed. The temporary
// file of a record that is being written has another kind of name.
func boxEvents(buf []byte) (found, removed bool) {
	for mask, name := range events(buf) {
		all := mask&unread != 0
		if all || strings.HasSuffix(name, ".json") {
			found = true
			removed = removed || all || mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0
		}
	}
	return found, removed
}

// newInotify returns an inotify descriptor that watches a directory for events.
// Reads of it do not block.
func newInotify(dir string, events uint32) (int, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return -1, err
	}
	if _, err := unix.InotifyAddWatch(fd, dir, events|unix.IN_ONLYDIR); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// unread are the events that mean that others were lost: the queue was full, or
// the directory is gone.
const unread = unix.IN_Q_OVERFLOW | unix.IN_IGNORED | unix.IN_UNMOUNT

// events returns the masks and names of the events that were read from an
// inotify descriptor.
func events(buf []byte) iter.Seq2[uint32, string] {
	return func(yield func(uint32, string) bool) {
		for len(buf) >= unix.SizeofInotifyEvent {
			mask, end := binary.NativeEndian.Uint32(buf[4:]), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(buf[12:]))
			if !yield(mask, unix.ByteSliceToString(buf[unix.SizeofInotifyEvent:end])) {
				return
			}
			buf = buf[end:]
		}
	}
}

// watch reports changes in a directory of records, and the ends of processes.
type watch struct {
	epoll, inotify int
	keys           map[int]string // the key of a process's record, by its pidfd
}

func newWatch(dir string) (*watch, error) {
	w := &watch{epoll: -1, keys: map[int]string{}}
	var err error
	if w.inotify, err = newInotify(dir, unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE|unix.IN_CLOSE_WRITE|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF); err == nil {
		w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	}
	if err == nil {
		err = w.add(w.inotify)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *watch) add(fd int) error {
	return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// process watches for the end of a process. It returns the pidfd, or -1 if the
// process has ended already.
func (w *watch) process(p process.Identity, key string) (int, error) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	if p.Ended() { // the PID is another process's
		closeNumber(fd)
		return -1, nil
	}
	if err := w.add(fd); err != nil {
		closeNumber(fd)
		return -1, err
	}
	w.keys[fd] = key
	return fd, nil
}

// changes returns the keys of the records that have changed, or whose init has
// ended, since the last call. whole means that any record may have changed.
func (w *watch) changes() (keys []string, whole bool, err error) {
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(w.epoll, events[:], 0)
	if errors.Is(err, unix.EINTR) || n == len(events) {
		return nil, true, nil
	}
	for _, e := range events[:max(n, 0)] {
		if fd := int(e.Fd); fd != w.inotify {
			keys = append(keys, w.keys[fd])
			continue
		}
		names, all, err := w.names()
		if err != nil || all {
			return nil, all, err
		}
		keys = append(keys, names...)
	}
	return keys, false, err
}

// names returns the keys of the records for which inotify has queued events.
// whole means that any record may have changed.
func (w *watch) names() (keys []string, whole bool, err error) {
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.inotify, buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return keys, false, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, false, err
		}
		for mask, name := range events(buf[:n]) {
			if mask&(unread|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 {
				return nil, true, nil
			}
			if key, ok := strings.CutSuffix(name, ".json"); ok {
				keys = append(keys, key)
			}
		}
	}
}

func (w *watch) close() {
	closeNumber(w.epoll)
	closeNumber(w.inotify)
}

func closeNumber(fd int) {
	if fd >= 0 {
		_ = unix.Close(fd)
	}
}
