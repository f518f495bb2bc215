package spool

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
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

// follower tells an exec of what another process writes to its files.
type follower struct{ events *os.File }

// begins has an exec of another process followed, if it has not ended and is not
// followed yet. The caller holds mu.
func (e *Exec) begins() error {
	if !e.s.reads || e.ended || e.follow != nil {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	f := &follower{os.NewFile(uintptr(fd), "inotify")}
	if _, err := unix.InotifyAddWatch(fd, e.s.boxDir(e.box), changes|unix.IN_ONLYDIR); err != nil {
		f.end()
		return err
	}
	e.follow = f
	e.refresh() // what was written before the watch stood
	go func() {
		for buf := make([]byte, 4096); ; { // some events; what does not fit is read next
			n, err := f.events.Read(buf)
			if err != nil {
				return // end has closed it
			}
			if strings.Contains(string(buf[:n]), e.id) || nameless(buf[:n]) {
				e.mu.Lock()
				if e.follow == f {
					e.refresh()
					e.publish()
				}
				e.mu.Unlock()
			}
		}
	}()
	return nil
}

// nameless reports whether an event without a name is among those of an inotify read:
// events were lost.
func nameless(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		size := int(events[12]) | int(events[13])<<8
		if size == 0 {
			return true
		}
		events = events[min(len(events), unix.SizeofInotifyEvent+size):]
	}
	return false
}

// end ends the following.
func (f *follower) end() {
	if f != nil {
		_ = f.events.Close()
	}
}

// refresh reads how far the other process has come; without one it does nothing. The
// record comes first and the sizes last: so each is no older than what it has to cover.
// A failure leaves what is known, and comes again with the next event. The caller holds
// mu.
func (e *Exec) refresh() {
	if !e.s.reads || e.ended {
		return
	}
	rec, err := e.s.records(e.box).Get(e.id)
	if errors.Is(err, fs.ErrNotExist) { // removed with its box, and perhaps ended before
		rec = written{Exec: e.rec.Ended(api.ExitStatus{
			Status: api.ExecFailed, Reason: api.ReasonBoxStopped, ExitCode: 128 + 9, Signal: 9, FinishedAt: time.Now(),
		})}
		err = nil
	}
	if err != nil || e.out.renew() != nil {
		return
	}
	if rec.Status != api.ExecRunning {
		e.rec, e.lost, e.ended, e.out.final = counted(rec.Exec, e.out.sizes), rec.Lost, true, true
	}
}

// recheck reads what was dropped meanwhile of an exec of another process. The caller holds
// mu.
func (e *Exec) recheck() {
	if e.s.reads && !e.ended {
		_ = e.out.renew() // the next event tries again
	}
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

// renewals bounds how often an index is read again that changes meanwhile.
const renewals = 10

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
