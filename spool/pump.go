package spool

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
)

// drain is how long output is still read after a command's own process has
// ended while a background child holds its pipes (contract, section 3).
const drain = 200 * time.Millisecond

// pause is the time until another try on a disk that is full or read-only: the
// kernel does not tell when it can be written again.
const pause = 200 * time.Millisecond

// source is what a pump waits for: the streams, by their number, and the end.
type source int

const (
	theEnd  source = 2 // behind Stdout and Stderr
	sources int    = 3
)

// pump moves one exec's output into its files, from the start of the command
// to its end, in one goroutine.
type pump struct {
	e    *Exec
	x    *core.Exec
	poll *poller
	fds  [sources]int // -1 once it has ended
	tty  []byte       // the buffer for a terminal; nil for pipes

	burst int64         // bytes since it was last quiet
	last  time.Time     // when bytes came last
	pause time.Duration // for more to gather

	end   api.ExitStatus
	over  time.Time // until when output is waited for, once the command has ended
	left  [2]int64  // what lay in the pipes when it ended: it is read in any case
	late  time.Time // since when the disk is full
	stays bool      // the command goes on without us
}

func newPump(e *Exec) (*pump, error) {
	u := &pump{e: e, x: e.command, fds: [sources]int{-1, -1, e.command.ExitFD()}}
	stdout, stderr := u.x.Output()
	u.fds[Stdout] = int(stdout.Fd())
	if stderr != nil {
		u.fds[Stderr] = int(stderr.Fd())
	}
	if e.rec.TTY {
		u.tty = make([]byte, 4096) // what a terminal gives at once
	}
	var err error
	if u.poll, err = newPoller(); err != nil {
		return nil, err
	}
	for place, fd := range u.fds {
		if fd >= 0 && err == nil {
			err = u.poll.add(fd, source(place))
		}
	}
	if err != nil {
		u.poll.close()
	}
	e.poll = u.poll
	return u, err
}

// run ends with the exec, or with the store.
func (u *pump) run() {
	defer u.poll.close()
	for u.open() {
		ready, err := u.poll.wait()
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			u.e.s.log.Error("an exec can't be followed any more", "exec_id", u.e.rec.ID, "error", err)
			u.stays = true
		}
		u.take(Stdout, ready[Stdout])
		u.take(Stderr, ready[Stderr])
		if ready[theEnd] {
			u.ended()
		}
	}
	u.finish()
}

// open tells whether there is something left to wait for.
func (u *pump) open() bool {
	if u.stays = u.stays || u.e.stopping(); u.stays {
		return false
	}
	if u.fds[theEnd] >= 0 {
		return true
	}
	held := time.Now().Before(u.over) || u.left[Stdout] > 0 || u.left[Stderr] > 0
	return held && (u.fds[Stdout] >= 0 || u.fds[Stderr] >= 0)
}

// take moves what a stream has, once there is room for it.
func (u *pump) take(s Stream, ready bool) {
	if !ready || !u.e.makeRoom() {
		return
	}
	n, err := u.read(s)
	switch {
	case n > 0:
		u.left[s] -= n
		u.grow(s, n, false)
		u.gather(s, n)
	case errors.Is(err, unix.EAGAIN):
		u.left[s] = 0
	case err == nil, u.tty != nil && errors.Is(err, unix.EIO): // EIO: the last user of a terminal has gone
		u.close(source(s))
	default:
		u.trouble(err)
	}
}

// grow makes n new bytes of a stream known.
func (u *pump) grow(s Stream, n int64, whole bool) {
	for err := u.e.grow(s, n, whole); err != nil; err = u.e.grow(s, 0, whole) {
		if !u.trouble(err) {
			return
		}
	}
	u.late = time.Time{}
}

func (u *pump) read(s Stream) (int64, error) {
	f, at, err := u.e.file(s)
	if err != nil {
		return 0, err
	}
	if u.tty != nil {
		return copyTo(f, at, u.fds[s], u.tty)
	}
	return splice(f, at, u.fds[s])
}

// What flows (more than flow bytes, never quiet for as long as lull) is gathered
// for a moment before it is read on. Woken by every write, all processes on its
// way would spend more time on waking each other than on moving bytes.
const (
	flow    = 256 << 10
	lull    = 10 * time.Millisecond
	plenty  = 512 << 10 // to move at once
	longest = 4 * time.Millisecond
)

// gather waits for more of a stream that flows, in a pipe that holds more.
// Little output, and the end of a command, are never held up.
func (u *pump) gather(s Stream, n int64) {
	now := time.Now()
	if now.Sub(u.last) > lull {
		u.burst, u.pause = 0, longest/16
	}
	before := u.burst
	u.last, u.burst = now, u.burst+n
	if u.burst <= flow || u.tty != nil {
		return
	}
	if before <= flow {
		_, _ = unix.FcntlInt(uintptr(u.fds[s]), unix.F_SETPIPE_SZ, takes) // may be refused: the old size serves
	}
	if n < plenty {
		u.pause = min(2*u.pause, longest)
	} else {
		u.pause /= 2
	}
	time.Sleep(u.pause)
}

func (u *pump) close(place source) {
	u.poll.remove(u.fds[place])
	u.fds[place] = -1
	if place != theEnd {
		u.left[place] = 0
	}
}

// ended takes the end of the command. Its output is read to the end, or for a
// while when a background child holds the pipes.
func (u *pump) ended() {
	end, err := u.x.Exit()
	if err != nil {
		u.e.s.log.Warn("the end of an exec is not known", "exec_id", u.e.rec.ID, "error", err)
		end = api.ExitStatus{Status: api.ExecLost, FinishedAt: time.Now()}
	}
	u.end, u.over = end, time.Now().Add(drain)
	for s, fd := range u.fds[:theEnd] {
		if n, err := unix.IoctlGetInt(fd, unix.TIOCINQ); fd >= 0 && err == nil {
			u.left[s] = int64(n)
		}
	}
	u.close(theEnd)
	u.poll.until(u.over)
}

// trouble waits when a file can't be written; false says not to try again.
// Nothing is lost by waiting: the command waits too. But one that has ended
// can't be kept from its end for ever.
func (u *pump) trouble(err error) bool {
	if u.e.gone() { // and its files with its box: there is nothing to keep
		u.closeStreams()
		return false
	}
	now := time.Now()
	if u.late.IsZero() {
		u.late = now
		u.e.s.log.Error("output can't be written: the command waits", "exec_id", u.e.rec.ID, "box_id", u.e.rec.BoxID, "error", err)
	}
	if u.e.makeSpace() {
		return true
	}
	if u.fds[theEnd] < 0 && now.Sub(u.late) > u.e.s.timeout {
		u.e.s.log.Error("the end of an exec's output is lost", "exec_id", u.e.rec.ID, "box_id", u.e.rec.BoxID, "error", err)
		u.e.giveUp()
		u.closeStreams()
		return false
	}
	u.e.rest(pause)
	return !u.e.stopping()
}

func (u *pump) closeStreams() {
	for s, fd := range u.fds[:theEnd] {
		if fd >= 0 {
			u.close(source(s))
		}
	}
}

// finish publishes the end, or leaves the command to the next process that
// opens the store.
func (u *pump) finish() {
	if u.stays {
		_ = u.x.Detach()
		return
	}
	for _, s := range []Stream{Stdout, Stderr} { // a character that never became whole
		u.grow(s, 0, true)
	}
	err := u.e.end(u.end)
	_ = u.x.Close()
	if err != nil {
		u.e.insist()
	}
}
