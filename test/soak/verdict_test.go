package soak_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandbox/core/fault"
)

// way is a way to disturb.
type way string

const (
	daemonKilled way = "daemon killed"
	shimKilled   way = "shim killed"
	hostKilled   way = "host program killed"
	daemonShort  way = "daemon short of descriptors"
	shimShort    way = "shim short of descriptors"
	startedShort way = "daemon and shim started with few descriptors"
	diskFull     way = "disk full"
	damaged      way = "records damaged"
)

// op is what a client asks for.
type op string

const (
	create   op = "create"
	start    op = "start"
	stop     op = "stop"
	remove   op = "remove"
	sweep    op = "gc"
	runOnce  op = "run"
	execute  op = "exec"
	cancel   op = "cancel"
	read     op = "read"   // boxes, execs, events
	attach   op = "attach" // to an exec
	terminal op = "terminal"
	upload   op = "upload"
	download op = "download"
	newKey   op = "key"
)

// All that asks the shim for something, and all that writes to the home.
var (
	byShim  = []op{create, start, stop, remove, sweep, runOnce}
	writing = []op{create, start, stop, remove, sweep, runOnce, execute, terminal, upload, newKey}
)

// mayFail is the table of the package's comment: which calls may fail with which
// code while, or because, there is a disturbance. ops is nil for all of them.
var mayFail = map[way]struct {
	ops   []op
	kinds []fault.Kind
}{
	daemonKilled: {nil, []fault.Kind{fault.Unavailable}},
	shimKilled:   {byShim, []fault.Kind{fault.Engine}},
	hostKilled:   {},
	daemonShort:  {nil, []fault.Kind{fault.ResourceExhausted}},
	shimShort:    {byShim, []fault.Kind{fault.ResourceExhausted}},
	startedShort: {nil, []fault.Kind{fault.ResourceExhausted}},
	diskFull:     {writing, []fault.Kind{fault.Storage}},
	damaged:      {},
}

// history is which disturbances there have been, and when.
type history struct {
	mu  sync.Mutex
	all []*disturbance
}

type disturbance struct {
	way      way
	from, to time.Time // to is zero while it lasts
}

// begin notes the beginning of a disturbance, and returns what notes its end.
func (h *history) begin(w way) (end func()) {
	d := &disturbance{way: w, from: time.Now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, d)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		d.to = time.Now()
	}
}

// since returns the disturbances that there were from a time until now.
func (h *history) since(from time.Time) (found []disturbance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.all {
		if d.to.IsZero() || d.to.After(from) {
			found = append(found, *d)
		}
	}
	return found
}

// may tells whether a call that began at a time may have failed like this.
func (h *history) may(o op, from time.Time, kind fault.Kind) bool {
	return slices.ContainsFunc(h.since(from), func(d disturbance) bool {
		row := mayFail[d.way]
		return slices.Contains(row.kinds, kind) && (row.ops == nil || slices.Contains(row.ops, o))
	})
}

// wasFull tells whether the disk was full at any time from a time on.
func (h *history) wasFull(from time.Time) bool {
	return slices.ContainsFunc(h.since(from), func(d disturbance) bool { return d.way == diskFull })
}

// String names the way, for messages.
func (d disturbance) String() string { return string(d.way) }

// tally counts what was done and found.
type tally struct {
	boxes, execs, cuts, bytes, retries  atomic.Int64
	lost, wrong, duplicates, unexpected atomic.Int64
	dropped                             atomic.Int64 // bytes, as a gap told, on a full disk
	answered                            atomic.Int64 // calls, whatever the answer

	refusing sync.Mutex
	refused  map[string]int // by call and code
}

func (t *tally) refuse(o op, kind fault.Kind) {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	if t.refused == nil {
		t.refused = map[string]int{}
	}
	t.refused[string(o)+": "+kind.String()]++
}
