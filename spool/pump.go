package spool

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
)

// drain is how long output is still read after a command's own process has
// ended, if a background child holds its pipes (contract, section 3).
const drain = 200 * time.Millisecond

// pause is the time until the next try on a disk that is full or read-only: the
// kernel does not tell when it can be written again.
const pause = 200 * time.Millisecond

// source is what a pump waits for: a stream, by its number, or the command's
// end.
type source int

const (
	theEnd  source = 2 // follows Stdout and Stderr
	sources int    = 3
)

// pump moves one exec's output into its files, from the start of the command to
// its end, in one goroutine.
type pump struct {
	e    *Exec
	x    *core.Exec
	poll *poller
	fds  [sources]int // -1 once the source has ended
	tty  bool

	unsaved []byte // what was read from a terminal and found no room on the disk yet

	burst int64         // bytes since the command was last quiet
	last  time.Time     // when bytes came last
	pause time.Duration // how long to wait for more bytes to gather

	end   api.ExitStatus
	over  time.Time // once the command has ended: until when to wait for more output
	left  [2]int64  // bytes that were in the pipes when it ended; they are read in any case
	late  time.Time // since when the disk has been full
	stays bool      // the command continues without this process
}

func newPump(e *Exec) (*pump, error) {
	u := &pump{e: e, x: e.command, fds: [sources]int{-1, -1, e.command.ExitFD()}}
	stdout, stderr := u.x.Output()
	u.fds[Stdout] = int(stdout.Fd())
	if stderr != nil {
		u.fds[Stderr] = int(stderr.Fd())
	}
	u.tty = stderr == nil
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

// run moves output until the exec ends or the store is closed.
func (u *pump) run() {
	defer u.poll.close()
	for u.open() {
		ready, err := u.poll.wait(len(u.unsaved) == 0)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			u.left = [2]int64{} // a terminal held less than it seemed to
		} else if err != nil {
			u.e.s.log.Error("the output of an exec can't be read any more", "exec_id", u.e.id, "error", err)
			u.stays = true
		}
		u.take(Stdout, ready[Stdout] || len(u.unsaved) > 0)
		u.take(Stderr, ready[Stderr])
		if ready[theEnd] {
			u.ended()
		}
	}
	u.finish()
}

// open reports whether there is something left to wait for.
func (u *pump) open() bool {
	if u.stays = u.stays || u.e.stopping(); u.stays {
		return false
	}
	if u.fds[theEnd] >= 0 {
		return true
	}
	held := time.Now().Before(u.over) || u.left[Stdout] > 0 || u.left[Stderr] > 0 || len(u.unsaved) > 0
	return held && (u.fds[Stdout] >= 0 || u.fds[Stderr] >= 0)
}

// take moves the available output of a stream into its file. It first waits
// until there is room for it.
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
	case err == nil, u.tty && errors.Is(err, unix.EIO): // EIO: the last user of the terminal has gone
		u.close(source(s))
	default:
		u.trouble(err)
	}
}

// grow announces n new bytes of a stream to the readers.
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
	if u.tty {
		return u.copyTerminal(f, at, u.fds[s])
	}
	return splice(f, at, u.fds[s])
}

// shown is the most bytes of a terminal that are moved at once. More would wait
// in memory only, which is lost when the process is killed.
const shown = 32 << 10

var showing = sync.Pool{New: func() any { return new([shown]byte) }}

// copyTerminal moves what a terminal shows into its file, because splice(2) can't.
// What the disk has no room for is kept for the next call.
func (u *pump) copyTerminal(f *os.File, at int64, tty int) (int64, error) {
	p := u.unsaved
	if len(p) == 0 {
		buf := showing.Get().(*[shown]byte)
		defer showing.Put(buf)
		n, err := core.ReadReady(tty, buf[:])
		if n <= 0 {
			return 0, err
		}
		p = buf[:n]
	}
	n, err := f.WriteAt(p, at)
	u.unsaved = append([]byte(nil), p[n:]...)
	return int64(n), err
}

// A stream that flows (more than flow bytes, never quiet for as long as lull) is
// gathered for a moment before it is read on. If each write woke all processes
// that the bytes pass through, these would spend more time on waking each other
// than on moving bytes.
const (
	flow    = 256 << 10
	lull    = 10 * time.Millisecond
	plenty  = 512 << 10 // bytes to move at once
	longest = 4 * time.Millisecond
)

// A terminal is gathered too, but it holds a few KiB only: it flows when it has shown
// this much, and a longer moment would make its command wait.
const (
	muchShown = 64 << 10
	moment    = time.Millisecond
)

// gather waits for more of a stream that flows, and enlarges its pipe so that
// it can hold more. Small output, and the end of a command, are never delayed.
func (u *pump) gather(s Stream, n int64) {
	now := time.Now()
	if now.Sub(u.last) > lull {
		u.burst, u.pause = 0, longest/16
	}
	before := u.burst
	u.last, u.burst = now, u.burst+n
	if u.tty {
		if u.burst > muchShown && n < shown {
			time.Sleep(moment)
		}
		return
	}
	if u.burst <= flow {
		return
	}
	if before <= flow {
		_, _ = unix.FcntlInt(uintptr(u.fds[s]), unix.F_SETPIPE_SZ, takes) // if the kernel refuses, the old size will do
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

// ended handles the end of the command. Its output is read to the end, or only
// for a while if a background child holds the pipes.
func (u *pump) ended() {
	end, err := u.x.Exit()
	if err != nil {
		u.e.s.log.Warn("how an exec ended is not known", "exec_id", u.e.id, "error", err)
		end = api.ExitStatus{Status: api.ExecLost, FinishedAt: time.Now()}
	}
	u.end, u.over = end, time.Now().Add(drain)
	for s, fd := range u.fds[:theEnd] {
		if fd >= 0 {
			u.left[s] = u.waiting(fd)
		}
	}
	u.close(theEnd)
	u.poll.until(u.over)
}

// inTerminal is more than a terminal holds of what was written to it. How much it
// is can't be asked for: FIONREAD counts only a part.
const inTerminal = 64 << 10

// waiting returns how many bytes wait in a pipe, or at most how many in a terminal.
func (u *pump) waiting(fd int) int64 {
	if u.tty {
		return inTerminal
	}
	n, _ := unix.IoctlGetInt(fd, unix.TIOCINQ) // 0 if it fails
	return int64(n)
}

// trouble waits if a file can't be written. It returns false if the caller must
// not try again. Waiting loses nothing, because the command waits too. But if
// the command has ended, its end can't be held back for ever.
func (u *pump) trouble(err error) bool {
	if u.e.gone() { // its files were removed with its box: there is nothing to keep
		u.closeStreams()
		return false
	}
	now := time.Now()
	if u.late.IsZero() {
		u.late = now
		u.e.s.log.Error("output can't be written: the command waits until it can", "exec_id", u.e.id, "box_id", u.e.box, "error", err)
	}
	if kind, _ := fault.Host(err); kind == fault.Storage && u.e.makeSpace() {
		return true
	}
	if u.fds[theEnd] < 0 && now.Sub(u.late) > u.e.s.timeout {
		u.e.s.log.Error("the end of an exec's output is lost", "exec_id", u.e.id, "box_id", u.e.box, "error", err)
		u.e.giveUp()
		u.closeStreams()
		return false
	}
	u.e.rest(pause)
	return !u.e.stopping()
}

func (u *pump) closeStreams() {
	u.unsaved = nil
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
	for _, s := range []Stream{Stdout, Stderr} { // for a character that was never completed
		u.grow(s, 0, true)
	}
	err := u.e.end(u.end)
	_ = u.x.Close()
	if err != nil {
		u.e.insist()
	}
}
