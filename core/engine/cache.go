package engine

import (
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sandbox/core"
	"sandbox/core/engine/process"
	"sandbox/core/engine/record"
	"sandbox/core/ids"
	"sandbox/core/store"
)

// cache keeps the records of a home in memory for a process that is asked for
// them all the time. One system call tells whether they are still true: the
// kernel has queued the change of a record before the call that made it
// returns, whichever process that was (inotify), and the end of a box's init
// too (pidfd). Where there is no watch to be had, records are read anew.
type cache struct {
	dir store.Dir[record.Box]

	mu    sync.Mutex
	watch *watch // nil until needed, and after a failure
	boxes map[string]cached
	list  []core.Record // of boxes, newest first; handed out and never changed
}

type cached struct {
	box record.Box
	err error // of a damaged record
	fd  int   // of the init of a running box; -1 for none
}

// all returns all records. The failure is that of damaged ones.
func (c *cache) all() ([]core.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.forget()
		return readAll(c.dir)
	}
	var damaged []error
	if len(c.list) == 0 {
		for _, b := range c.boxes {
			damaged = append(damaged, b.err)
		}
	}
	return c.list, errors.Join(damaged...)
}

// get returns one record, if it is there and whole.
func (c *cache) get(id string) (record.Box, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.forget()
		return record.Box{}, false
	}
	b, ok := c.boxes[id]
	return b.box, ok && b.err == nil
}

func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
}

// forget drops everything.
func (c *cache) forget() {
	for _, b := range c.boxes {
		closeNumber(b.fd)
	}
	if c.watch != nil {
		c.watch.close()
	}
	c.watch, c.boxes, c.list = nil, nil, nil
}

// refresh brings the records up to date. c.mu is held.
func (c *cache) refresh() error {
	if c.watch == nil {
		return c.load()
	}
	changed, whole, err := c.watch.changes()
	if err != nil {
		return err
	}
	if whole {
		c.forget()
		return c.load()
	}
	for _, key := range changed {
		if err := c.read(key); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		c.sort()
	}
	return nil
}

// load reads all records, with the watch in place before the first one is read.
func (c *cache) load() (err error) {
	if err := os.MkdirAll(c.dir.Path, 0o700); err != nil {
		return err
	}
	if c.watch, err = newWatch(c.dir.Path); err != nil {
		return err
	}
	c.boxes = map[string]cached{}
	entries, err := os.ReadDir(c.dir.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if key, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			if err := c.read(key); err != nil {
				return err
			}
		}
	}
	c.sort()
	return nil
}

// read reads one record anew; also when it is the end of its init that is new.
func (c *cache) read(key string) error {
	if old, ok := c.boxes[key]; ok {
		closeNumber(old.fd) // leaves the watch with that
		delete(c.boxes, key)
	}
	if !ids.Box.Valid(key) {
		return nil
	}
	b, err := c.dir.Get(key)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	entry := cached{box: b, err: err, fd: -1}
	if err == nil && b.State == core.Running {
		entry.fd, err = c.watch.process(b.Init, key)
		if err != nil {
			return err
		}
		entry.box.Correct() // after the watch: an end from here on is seen
	}
	c.boxes[key] = entry
	return nil
}

func (c *cache) sort() {
	c.list = make([]core.Record, 0, len(c.boxes))
	for b := range maps.Values(c.boxes) {
		if b.err == nil {
			c.list = append(c.list, b.box.Record)
		}
	}
	slices.SortFunc(c.list, newestFirst)
}

// watch tells of changes in a directory of records and of the ends of processes.
type watch struct {
	epoll, inotify int
	keys           map[int]string // of the processes' records
}

func newWatch(dir string) (*watch, error) {
	w := &watch{epoll: -1, inotify: -1, keys: map[int]string{}}
	var err error
	if w.inotify, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err == nil {
		_, err = unix.InotifyAddWatch(w.inotify, dir, unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE|unix.IN_CLOSE_WRITE|
			unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR)
	}
	if err == nil {
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

// process watches for the end of a process; -1 for one that has ended.
func (w *watch) process(p process.Identity, key string) (int, error) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	if !p.Alive() { // the number is another's
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

// changes returns the keys of what has changed since the last call; whole means
// that anything may have.
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

// names reads what inotify has queued.
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
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			mask, size := binary.NativeEndian.Uint32(rest[4:]), int(binary.NativeEndian.Uint32(rest[12:]))
			if mask&(unix.IN_Q_OVERFLOW|unix.IN_IGNORED|unix.IN_UNMOUNT|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 {
				return nil, true, nil
			}
			name := unix.ByteSliceToString(rest[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size])
			if key, ok := strings.CutSuffix(name, ".json"); ok {
				keys = append(keys, key)
			}
			rest = rest[unix.SizeofInotifyEvent+size:]
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
