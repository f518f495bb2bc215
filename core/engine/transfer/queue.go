package transfer

import (
	"bufio"
	"sync"

	"sandbox/api"
	"sandbox/core/engine/wire"
)

// Bounds of a queue of events, so that a host that reads slowly costs the box no
// more memory than this.
const (
	maxQueued      = 16 << 10 // events
	maxQueuedBytes = 4 << 20
)

// queue holds the events of a watch until the host reads them. When it is full,
// one overflow takes the place of what is lost, and events go on when half of it
// is free again.
type queue struct {
	mu      sync.Mutex
	change  sync.Cond
	records [][]byte
	bytes   int
	losing  bool // the overflow is in the queue, and events are dropped
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.change.L = &q.mu
	return q
}

// push adds an event, or drops it.
func (q *queue) push(e wire.Event) {
	record := wire.AppendRecord(nil, e.Append(nil))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.losing && (len(q.records) > maxQueued/2 || q.bytes > maxQueuedBytes/2) {
		return
	}
	q.losing = len(q.records) >= maxQueued || q.bytes+len(record) > maxQueuedBytes
	if q.losing {
		record = wire.AppendRecord(nil, wire.Event{Type: api.Overflow}.Append(nil))
	}
	q.add(record)
}

// end adds the last event, which is never dropped.
func (q *queue) end(e wire.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.add(wire.AppendRecord(nil, e.Append(nil)))
		q.closed = true
	}
}

// add adds a record. q.mu is held.
func (q *queue) add(record []byte) {
	if q.closed {
		return
	}
	q.records = append(q.records, record)
	q.bytes += len(record)
	q.change.Signal()
}

// write writes records to the host, until the last one or until the host has
// gone.
func (q *queue) write(to *bufio.Writer) error {
	for {
		records, last := q.take()
		for _, record := range records {
			if _, err := to.Write(record); err != nil {
				return err
			}
		}
		if err := to.Flush(); err != nil || last {
			return err
		}
	}
}

// atOnce is how many records are taken from a queue at a time: what was taken is
// no longer bounded by it.
const atOnce = 256

// take waits for records and returns some. last tells whether they are the last.
func (q *queue) take() (records [][]byte, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.records) == 0 && !q.closed {
		q.change.Wait()
	}
	n := min(len(q.records), atOnce)
	records = q.records[:n:n]
	q.records = q.records[n:]
	for _, record := range records {
		q.bytes -= len(record)
	}
	return records, q.closed && len(q.records) == 0
}
