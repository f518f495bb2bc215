package code

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/api"
)

// This file ends code that is not wanted any more.

// leave interrupts the code because nobody wants its result. It may be called at any time.
func (r *runner) leave() { r.stop(api.CodeInterrupted) }

// stop interrupts the code, once more if it does not end, and then kills it. A run does not
// end while it is being interrupted, lest the signal comes to the next one.
func (r *runner) stop(why api.CodeStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.stopping != "" {
		return
	}
	r.stopping = why
	// First, so that it ends even where it can't be interrupted.
	r.timers = append(r.timers, time.AfterFunc(grace, r.kill), time.AfterFunc(grace/2, r.again))
	r.interrupt()
}

// again interrupts the code once more: languages lose a signal that comes in a bad moment.
func (r *runner) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.interrupt()
	}
}

// interrupt sends SIGINT to the kernel and its children. mu is locked.
func (r *runner) interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_, _ = r.box.Interrupt(ctx, r.kernel.ID()) // if it has ended, its reader is told
}

// kill ends all processes of the context.
func (r *runner) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.killed {
		return
	}
	r.killed = true
	_ = r.kernel.Signal(context.Background(), int(unix.SIGKILL)) // if it has ended, its reader is told
	_ = r.kernel.HangUp(context.Background(), 0)
	r.timers = append(r.timers, time.AfterFunc(dying, r.abandon))
}

// after calls do after d, unless the run is over by then.
func (r *runner) after(d time.Duration, do func()) *time.Timer {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := time.AfterFunc(d, do)
	if r.over {
		t.Stop()
	}
	r.timers = append(r.timers, t)
	return t
}

// why returns why the code is being stopped, or "".
func (r *runner) why() api.CodeStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}

// stopped notes that nothing is left to stop, and returns why the code was stopped.
func (r *runner) stopped() api.CodeStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, t := range r.timers {
		t.Stop()
	}
	return r.stopping
}

// close ends the use of the context: code that still runs is stopped and waited for, and
// what it prints is dropped.
func (r *runner) close() {
	defer r.abandon()
	if r.reader != nil {
		if !r.told && r.exit == nil {
			r.leave()
		}
		for !r.told {
			if _, err := r.next(); err != nil {
				break
			}
		}
		r.reader.Close()
	}
	r.stopped()
	if in := r.kernel.Stdin(); in != nil {
		_ = in.SetWriteDeadline(time.Unix(1, 0))
	}
	<-r.written
	unread := r.kernel.fresh && r.reader == nil // the process would wait for its source for ever
	if unread {
		_ = r.kernel.Cancel(context.Background(), 0) // if it fails, the process has ended, or will with its box
	}
	if r.exit != nil || unread {
		_ = r.kernel.Close()
		return
	}
	_ = r.kernel.Detach()
}
