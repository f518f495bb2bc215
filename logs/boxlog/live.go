package boxlog

import (
	"sync"

	"sandbox/api"
	"sandbox/spool"
)

// live is the output of an exec that the spool does not have: of a terminal, and of
// a command whose output is its reply. What waits for the engine waits here, at most
// maxOutput of it, so that the command waits for nothing.
type live struct {
	mu     sync.Mutex
	left   int // bytes that are still taken
	pieces []piece
	ended  bool
	more   chan struct{} // holds one
}

// A piece is what came of one stream before anything came of the other.
type piece struct {
	stream spool.Stream
	data   []byte
}

// Live returns what takes the output of an exec that is not in the spool, and what
// is called once behind the last of it. Neither waits.
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

// keep makes rows of what comes, until the end of it or of the recorder.
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
