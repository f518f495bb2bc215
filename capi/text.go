package main

import (
	"bytes"
	"unicode/utf8"

	"sandbox/api"
	"sandbox/core"
)

// isClean tells whether text can be shown to C as it is: UTF-8 without NUL.
func isClean(text []byte) bool { return bytes.IndexByte(text, 0) < 0 && utf8.Valid(text) }

// clean appends text to dst, with U+FFFD for each NUL and for each byte that
// is not UTF-8.
func clean(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == 0 {
			r = utf8.RuneError
		}
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}

// headroom is where what a read left over is put before the next one: 3 bytes
// would do, but the kernel copies to a page boundary several times faster.
const headroom = 4096

// pieces cuts a command's output into text for C. What is UTF-8 already is
// handed on in the very buffer it was read into: what a read left over is put
// before the next one, and the NUL behind it.
type pieces struct {
	buffer  []byte                         // headroom, a read, a NUL
	left    [2][]byte                      // of each stream: the beginning of a character
	cleaned []byte                         // of the piece at hand, if it had to be
	emit    func(stderr bool, text []byte) // gets text with a NUL behind it, which is not counted
}

func newPieces(emit func(stderr bool, text []byte)) *pieces {
	return &pieces{buffer: make([]byte, headroom+core.OutputBuffer+1), emit: emit}
}

// room is the buffer to read into.
func (p *pieces) room() []byte { return p.buffer[headroom : len(p.buffer)-1] }

// read takes what a read put at the beginning of room.
func (p *pieces) read(stderr bool, n int) {
	left := p.of(stderr)
	begin, end := headroom-len(*left), headroom+n
	copy(p.buffer[begin:], *left)
	cut := end - api.Partial(p.buffer[begin:end])
	*left = append((*left)[:0], p.buffer[cut:end]...)
	p.put(stderr, p.buffer[begin:cut])
}

// flush hands out what both streams left over: characters that never ended.
func (p *pieces) flush() {
	for _, stderr := range []bool{false, true} {
		p.put(stderr, *p.of(stderr))
	}
}

func (p *pieces) put(stderr bool, text []byte) {
	if len(text) == 0 {
		return
	}
	if !isClean(text) {
		p.cleaned = clean(p.cleaned[:0], text)
		text = p.cleaned
	}
	text = append(text, 0) // in the buffer, over what was saved from there
	p.emit(stderr, text[:len(text)-1])
}

func (p *pieces) of(stderr bool) *[]byte {
	if stderr {
		return &p.left[1]
	}
	return &p.left[0]
}
