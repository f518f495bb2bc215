package spool

import (
	"context"
	"fmt"
	"os"
)

// Bytes reads an exec's output byte by byte. Only one goroutine may read; the other
// methods may be called at the same time.
type Bytes struct {
	r    reader
	from mark // the first byte of each stream
	pos  mark // the next one
}

// Missed is the error for output that was dropped before it was read. At has the
// offset in each stream at which the reading goes on, in bytes.
type Missed struct{ At [2]int64 }

// Error says where the streams go on.
func (m Missed) Error() string {
	return fmt.Sprintf("older output was dropped: the streams go on at %d and %d", m.At[Stdout], m.At[Stderr])
}

// begin begins to read at the oldest output that is kept, or after skip bytes of
// each stream if that is later. Errors: Storage.
func (b *Bytes) begin(skip [2]int64) error {
	e := b.r.e
	if err := e.join(&b.r); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b.r.seq = e.out.index.dropped
	for s := range b.pos {
		b.pos[s] = min(max(skip[s], e.out.index.base[s]), e.out.sizes[s])
	}
	b.from = b.pos
	e.nudge() // the pump may have seen a position of 0
	return nil
}

// From returns the offset in each stream at which the reading begins, in bytes.
func (b *Bytes) From() (stdout, stderr int64) { return b.from[Stdout], b.from[Stderr] }

// Wait waits until Next has something to return, or the exec has ended. Errors:
// those of ctx.
func (b *Bytes) Wait(ctx context.Context) error {
	e := b.r.e
	return b.r.wait(ctx, func() bool {
		return e.ended || e.out.sizes[Stdout] > b.pos[Stdout] || e.out.sizes[Stderr] > b.pos[Stderr]
	})
}

// Next reads on into buf, in the order in which output came. It returns n bytes
// of one stream, or 0 if there are none now. Errors: Storage; Missed, after which
// the next call reads on behind what is missing.
func (b *Bytes) Next(buf []byte) (s Stream, n int, err error) {
	got, err := b.pass(int64(len(buf)), func(p Piece) error {
		s = p.Stream
		_, err := p.File.ReadAt(buf[:p.Size], p.At)
		return b.r.e.storage(err)
	})
	return s, int(got), err
}

// Piece is output of one stream: Size bytes of File from offset At on. The file
// stays the store's.
type Piece struct {
	Stream   Stream
	File     *os.File
	At, Size int64
}

// pass has send take the next piece, of at most most bytes, and returns how many it
// had: 0 if there are none now, and send is not called. Errors: Storage; Missed, as of
// Next; those of send, after which the same piece comes again.
func (b *Bytes) pass(most int64, send func(Piece) error) (int64, error) {
	e := b.r.e
	e.mu.Lock()
	missed, now := b.missed(), e.look()
	e.mu.Unlock()
	if missed {
		return 0, Missed{b.pos}
	}
	s, end, seq, err := b.piece(now, most)
	p := Piece{s, now.files[s], b.pos[s], end - b.pos[s]}
	if err == nil && p.Size > 0 && p.File == nil {
		err = errMissing
	}
	if err != nil {
		err = e.storage(err)
	} else if p.Size > 0 {
		err = send(p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	unsure := e.recheck()
	if b.missed() { // it was dropped while it was read
		return 0, Missed{b.pos}
	}
	if unsure != nil && p.Size > 0 { // it may have been dropped while it was read
		return 0, e.storage(unsure)
	}
	if err != nil {
		return 0, err
	}
	b.pos[s] = end
	b.r.moved(max(seq, b.r.seq), b.pos)
	return p.Size, nil
}

// missed tells whether output was dropped before it was read, and moves behind
// it. The caller holds mu.
func (b *Bytes) missed() bool {
	kept, before := &b.r.e.out.index, b.pos
	if b.r.seq < kept.dropped {
		b.r.seq = kept.dropped
		b.pos = mark{max(b.pos[Stdout], kept.base[Stdout]), max(b.pos[Stderr], kept.base[Stderr])}
	}
	return b.pos != before
}

// piece finds what to read next: consecutive events of one stream or, after the
// last event, bytes that are not in an event yet. seq is the last event that is
// complete once this has been read.
func (b *Bytes) piece(now snapshot, most int64) (s Stream, end, seq int64, err error) {
	var block [32]mark
	marks := block[:min(int64(len(block)), now.index.n-b.r.seq)]
	if len(marks) > 0 {
		if err := now.index.read(b.r.seq+1, marks); err != nil {
			return 0, 0, 0, err
		}
	}
	s, seq, found := Stdout, b.r.seq, false
	end = b.pos[s]
	for _, m := range marks {
		at, more := b.ahead(m)
		if more && found && at != s {
			return s, end, seq, nil
		}
		if more {
			s, found = at, true
			if end = m[s]; end > b.pos[s]+most {
				return s, b.pos[s] + most, seq, nil
			}
		}
		seq++
	}
	if found || seq < now.index.n {
		return s, end, seq, nil
	}
	for _, t := range []Stream{Stdout, Stderr} {
		if now.sizes[t] > b.pos[t] {
			return t, min(now.sizes[t], b.pos[t]+most), seq, nil
		}
	}
	return s, end, seq, nil
}

// ahead returns the stream in which m is ahead of what was read. At most one
// stream is, because what was read includes the mark before m.
func (b *Bytes) ahead(m mark) (Stream, bool) {
	for _, s := range []Stream{Stdout, Stderr} {
		if m[s] > b.pos[s] {
			return s, true
		}
	}
	return Stdout, false
}

// Ended reports whether the exec has ended and all its output was read, and
// whether some of it was lost on a full disk.
func (b *Bytes) Ended() (ended, lost bool) {
	e := b.r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended && b.pos == e.out.sizes, e.lost
}
