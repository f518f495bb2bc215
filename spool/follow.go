package spool

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
)

// Read returns the execs of a store that another process writes, at dir, for reading
// alone: Get, Places, and the readers of an [Exec] work as in the process that writes.
// Nobody holds output there: what a reader is late for may have been dropped. The end of
// a reader ends what follows the files for it.
func Read(dir string) *Store {
	s := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	s.reads = true
	return s
}

// read returns an exec of another process.
func (s *Store) read(rec written) (*Exec, error) {
	e := s.exec(rec)
	e.ended = rec.Status != api.ExecRunning
	e.out.final = e.ended
	var err error
	e.out.sizes, err = sizesOf(e.out.base)
	if err != nil {
		return nil, e.storage(err)
	}
	return e, nil
}

// Shared reports whether another process writes the exec: here it is only read.
func (e *Exec) Shared() bool { return e.s.reads }

// changes are the events of the files of an exec: they grow, come, are replaced and removed.
// The kernel tells of the end of their directory only when nobody has a file of it open.
const changes = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE

// begins has an exec of another process followed, if it has not ended and is not
// followed yet. The caller holds mu.
func (e *Exec) begins() error {
	if !e.s.reads || e.ended || e.followed {
		return nil
	}
	if err := e.s.watcher.add(e); err != nil {
		return err
	}
	e.followed = true
	e.refresh() // what was written before the watch stood
	return nil
}

// leaves ends the following. The caller holds mu.
func (e *Exec) leaves() {
	if e.followed {
		e.followed = false
		e.s.watcher.remove(e)
	}
}

// watcher tells execs of what another process writes to their files. All of a store share
// one inotify descriptor, of which the kernel gives a user few.
type watcher struct {
	mu     sync.Mutex // taken behind that of an exec
	events *os.File   // nil while nothing is watched
	dirs   map[int]map[*Exec]struct{}
	at     map[*Exec]int // the watch of its directory
}

// add begins to tell an exec.
func (w *watcher) add(e *Exec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events == nil {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			return err
		}
		w.events = os.NewFile(uintptr(fd), "inotify")
		w.dirs, w.at = map[int]map[*Exec]struct{}{}, map[*Exec]int{}
		go w.read(w.events)
	}
	// Fd would make the descriptor block, and its reads never end.
	var dir int
	raw, err := w.events.SyscallConn()
	if err == nil {
		failed := raw.Control(func(fd uintptr) {
			dir, err = unix.InotifyAddWatch(int(fd), e.s.boxDir(e.box), changes|unix.IN_ONLYDIR)
		})
		err = errors.Join(failed, err)
	}
	if err != nil {
		w.rest()
		return err
	}
	if w.dirs[dir] == nil {
		w.dirs[dir] = map[*Exec]struct{}{}
	}
	w.dirs[dir][e], w.at[e] = struct{}{}, dir
	return nil
}

// remove ends what add began.
func (w *watcher) remove(e *Exec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := w.at[e]
	delete(w.at, e)
	delete(w.dirs[dir], e)
	if len(w.dirs[dir]) == 0 {
		delete(w.dirs, dir)
		if raw, err := w.events.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(dir)) }) // a directory that is gone has none
		}
	}
	w.rest()
}

// rest closes the descriptor when nothing is watched. The caller holds mu.
func (w *watcher) rest() {
	if len(w.at) == 0 && w.events != nil {
		_ = w.events.Close()
		w.events = nil
	}
}

// read tells execs of the events of their files until the descriptor is closed.
func (w *watcher) read(from *os.File) {
	for buf := make([]byte, 4096); ; { // some events; what does not fit is read next
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		for _, e := range w.concerned(from, buf[:n]) {
			e.mu.Lock()
			if e.followed {
				e.refresh()
				e.publish()
			}
			e.mu.Unlock()
		}
	}
}

// concerned returns the execs that the events of an inotify read are about.
func (w *watcher) concerned(from *os.File, events []byte) (execs []*Exec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events != from {
		return nil
	}
	names := map[int]string{}
	for dir, name := range named(events) {
		names[dir] += name
	}
	if _, lost := names[-1]; lost { // events of any of them
		return slices.Collect(maps.Keys(w.at))
	}
	for dir, name := range names {
		for e := range w.dirs[dir] {
			if strings.Contains(name, e.id) {
				execs = append(execs, e)
			}
		}
	}
	return execs
}

// named returns the watches and names of the events of an inotify read.
func named(events []byte) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for len(events) >= unix.SizeofInotifyEvent {
			end := min(len(events), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(events[12:])))
			if !yield(int(int32(binary.NativeEndian.Uint32(events))), string(events[unix.SizeofInotifyEvent:end])) {
				return
			}
			events = events[end:]
		}
	}
}

// refresh reads how far the other process has come; without one it does nothing. The
// record comes first and the sizes last: so each is no older than what it has to cover.
// A failure leaves what is known, and is tried again: the event may have been the last. The
// caller holds mu.
func (e *Exec) refresh() {
	if err := e.reread(); err != nil && !e.again {
		e.again = true
		time.AfterFunc(pause, e.refreshAgain)
	}
}

// refreshAgain does what refresh failed to do, unless the following has ended.
func (e *Exec) refreshAgain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.again = false
	if e.followed {
		e.refresh()
		e.publish()
	}
}

// reread does what refresh does, once. The caller holds mu.
func (e *Exec) reread() error {
	if !e.s.reads || e.ended {
		return nil
	}
	rec, err := e.s.records(e.box).Get(e.id)
	if errors.Is(err, fs.ErrNotExist) { // removed with its box, and perhaps ended before
		rec = written{Exec: e.rec.Ended(api.ExitStatus{
			Status: api.ExecFailed, Reason: api.ReasonBoxStopped, ExitCode: 128 + 9, Signal: 9, FinishedAt: time.Now(),
		})}
		err = nil
	}
	if err == nil {
		err = e.out.renew()
	}
	if err == nil && rec.Status != api.ExecRunning {
		e.rec, e.lost, e.ended, e.out.final = counted(rec.Exec, e.out.sizes), rec.Lost, true, true
	}
	return err
}

// recheck reads what was dropped meanwhile of an exec of another process. If it fails,
// what was read may be a hole, and is not to be told. The caller holds mu.
func (e *Exec) recheck() error {
	if e.s.reads && !e.ended {
		return e.out.renew()
	}
	return nil
}

// renew reads how far the files have grown, and opens those that have come.
func (o *output) renew() error {
	if err := o.index.renew(o.base + indexSuffix); err != nil {
		return err
	}
	for s, suffix := range suffixes {
		if o.files[s] == nil {
			f, err := os.Open(o.base + suffix)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			o.files[s] = f
		}
		info, err := o.files[s].Stat()
		if err != nil {
			return err
		}
		o.sizes[s] = info.Size()
	}
	return nil
}

// renewals bounds how often an index is read again that changes meanwhile. A change takes
// the other process longer than a reading takes, so that few in a row meet one.
const renewals = 1000

// renew reads an index that another process writes. That one notes what it drops before
// it drops it: so the base is right if nothing was dropped while it was read.
func (x *index) renew(name string) error {
	if x.f == nil {
		opened, err := openIndex(name)
		if err != nil || opened.f == nil {
			return err
		}
		*x = opened
	}
	for range renewals {
		now := index{f: x.f}
		if err := now.load(); err != nil {
			return err
		}
		again := index{f: x.f}
		if err := again.load(); err != nil {
			return err
		}
		if again.dropped == now.dropped {
			*x = now
			return nil
		}
	}
	return errDamaged
}
