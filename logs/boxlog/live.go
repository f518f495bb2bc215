package boxlog

import (
	"sync"

	"sandbox/api"
	"sandbox/spool"
)

// live holds the output of an exec that is not in the spool, because it is the
// reply to a request. Output that waits for the engine is kept here, at most
// maxOutput of it, so that the command never has to wait.
type live struct {
	mu     sync.Mutex
	left   int // how many more bytes are accepted
	pieces []piece
	ended  bool
	more   chan struct{} // signals new output; has a buffer of one
}

// A piece is consecutive output of one stream.
type piece struct {
	stream spool.Stream
	data   []byte
}

// Live returns two functions for an exec whose output is not in the spool. add
// takes its output, and end is called once after the last of it. Neither waits. Of e
// only the id, the box's id, and whether it has a terminal are used.
func (r *Recorder) Live(e api.Exec) (add func(stderr bool, p []byte), end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return func(bool, []byte) {}, func() {}
	}
	l := &live{left: maxOutput, more: make(chan struct{}, 1)}
	r.following.Go(func() { l.keep(r.output(e)) })
	return l.add, l.end
}

func (l *live) add(stderr bool, p []byte) {
	stream := spool.Stdout
	if stderr {
		stream = spool.Stderr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p = p[:min(len(p), l.left)]
	if len(p) == 0 {
		return
	}
	l.left -= len(p)
	if last := len(l.pieces) - 1; last >= 0 && l.pieces[last].stream == stream {
		l.pieces[last].data = append(l.pieces[last].data, p...)
	} else {
		l.pieces = append(l.pieces, piece{stream, append([]byte(nil), p...)})
	}
	l.wake()
}

func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

func (l *live) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// keep makes rows of the output, until the output or the recorder ends.
func (l *live) keep(o *output) {
	for {
		closing := false
		select {
		case <-l.more:
		case <-o.r.ctx.Done():
			closing = true
		}
		l.mu.Lock()
		pieces, ended := l.pieces, l.ended
		l.pieces = nil
		l.mu.Unlock()
		for _, p := range pieces {
			o.add(p.stream, p.data)
		}
		if ended || closing {
			o.flush()
			return
		}
		if !o.push() {
			return
		}
	}
}
