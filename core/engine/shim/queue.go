package shim

import (
	"runtime"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// maxWaiting is how many boxes may wait to be brought up. One takes some 10 ms
// of two CPUs, so that the last in the queue waits for a few seconds; who comes
// later is better told to come again than left without an answer.
const maxWaiting = 240

// queue bounds how many boxes are brought up at once, and how many wait for
// that. Those who wait have cost nothing but their connection.
type queue struct {
	working chan struct{}
	all     chan struct{} // who works and who waits
}

// newQueue makes a queue of which two boxes a CPU are brought up at once: while
// one waits for the kernel another works. More gain nothing, and only take
// longer each, with threads and descriptors of their own.
func newQueue() queue {
	atOnce := max(8, 2*runtime.NumCPU())
	return queue{make(chan struct{}, atOnce), make(chan struct{}, atOnce+maxWaiting)}
}

// enter waits for a turn, in order, and as long as the asker does. Errors:
// ResourceExhausted (the queue is full), Canceled.
func (q queue) enter(asker *wire.Conn) error {
	select {
	case q.all <- struct{}{}:
	default:
		return fault.New(fault.ResourceExhausted, "%d boxes of the home wait to be brought up, which is the most: ask again when some are there", maxWaiting)
	}
	select {
	case q.working <- struct{}{}:
		return nil
	default:
	}
	left, stop := asker.Watch()
	defer stop()
	select {
	case q.working <- struct{}{}:
		return nil
	case <-left:
		<-q.all
		return fault.New(fault.Canceled, "whoever asked for the box has gone")
	}
}

// leave passes the turn to the next.
func (q queue) leave() { <-q.working; <-q.all }
