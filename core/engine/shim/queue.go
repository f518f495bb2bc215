package shim

import (
	"runtime"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

// maxWaiting is how many boxes may wait to be started. To start one takes some 10
// ms of two CPUs, so the last in the queue waits for a few seconds. A client that
// comes later gets an error that says to try again, which is better than to
// leave it without an answer.
const maxWaiting = 240

// queue bounds how many boxes are started at once, and how many wait to be
// started. A request that waits costs nothing but its connection.
type queue struct {
	working chan struct{}
	all     chan struct{} // those that are started and those that wait
}

// newQueue returns a queue that lets two boxes per CPU be started at once, but
// never fewer than eight in all: while one waits for the kernel, another uses
// the CPU. More at once gain nothing: each only takes longer, and needs threads
// and descriptors of its own.
func newQueue() queue {
	atOnce := max(8, 2*runtime.NumCPU())
	return queue{make(chan struct{}, atOnce), make(chan struct{}, atOnce+maxWaiting)}
}

// enter waits for a turn, in the order of arrival, for as long as the client's
// connection is open. After success the caller calls leave. Errors:
// ResourceExhausted (the queue is full), Canceled (the client has hung up).
func (q queue) enter(asker *wire.Conn) error {
	select {
	case q.all <- struct{}{}:
	default:
		return fault.New(fault.ResourceExhausted, "%d boxes of this home wait to be started, which is the most: try again in a few seconds", maxWaiting)
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
		return fault.New(fault.Canceled, "the client that asked for the box has disconnected")
	}
}

// leave ends the caller's turn, so that the next in the queue has one.
func (q queue) leave() { <-q.working; <-q.all }
