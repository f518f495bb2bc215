package filelock

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// line stands for all waits of this process for one kind of lock of one file.
//
// Nothing but a signal breaks off the wait of flock(2), and a library may send
// its host none. So one goroutine does the waiting for the whole line, and hands
// each lock that it gets to the first wait. When all waits were given up it is
// left, with its thread, until the holder lets go, and lets go too. However many
// waits were given up, it is one goroutine for each file and kind of lock.
type line struct {
	path string
	how  int
}

// lines has the waits of each line that has a goroutine, in their order.
var lines = struct {
	sync.Mutex
	waits map[line][]chan result
}{waits: map[line][]chan result{}}

type result struct {
	f   *File
	err error
}

var errNobody = errors.New("nobody waits for the lock any more")

// wait waits for a lock, or until ctx ends.
func (l line) wait(ctx context.Context) (*File, error) {
	got := make(chan result, 1)
	l.join(got)
	select {
	case r := <-got:
		return r.f, r.err
	case <-ctx.Done():
		l.leave(got)
		return nil, ended(ctx)
	}
}

// join puts a wait at the end of the line, and starts the goroutine if there is
// none.
func (l line) join(got chan result) {
	lines.Lock()
	defer lines.Unlock()
	waits, served := lines.waits[l]
	lines.waits[l] = append(waits, got)
	if !served {
		go l.serve()
	}
}

// leave takes a wait out of the line, and closes the lock if it came just now.
func (l line) leave(got chan result) {
	lines.Lock()
	defer lines.Unlock()
	if waits, served := lines.waits[l]; served {
		lines.waits[l] = slices.DeleteFunc(waits, func(c chan result) bool { return c == got })
	}
	select {
	case r := <-got:
		if r.f != nil {
			_ = r.f.Close()
		}
	default:
	}
}

// serve gets locks for as long as somebody waits for one.
func (l line) serve() {
	for more := true; more; {
		f, err := take(l.abandoned, l.path, l.how)
		more = l.pass(result{f, err})
	}
}

// abandoned returns an error if nobody waits any more.
func (l line) abandoned() error {
	lines.Lock()
	defer lines.Unlock()
	if len(lines.waits[l]) == 0 {
		return errNobody
	}
	return nil
}

// pass hands a lock to the first wait, and returns whether there are more. If
// there is none, it lets go of the lock.
func (l line) pass(r result) (more bool) {
	lines.Lock()
	defer lines.Unlock()
	waits := lines.waits[l]
	switch {
	case errors.Is(r.err, errNobody): // somebody may have come since
	case len(waits) > 0:
		waits[0] <- r
		waits = waits[1:]
	case r.f != nil:
		_ = r.f.Close()
	}
	lines.waits[l] = waits
	if len(waits) == 0 {
		delete(lines.waits, l)
	}
	return len(waits) > 0
}
