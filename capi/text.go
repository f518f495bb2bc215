package main

import (
	"bytes"
	"unicode/utf8"

	"sandbox/api"
	"sandbox/core"
)

// isClean tells whether text can be passed to C unchanged: it is UTF-8 and has
// no NUL.
func isClean(text []byte) bool { return bytes.IndexByte(text, 0) < 0 && api.IsUTF8(text) }

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

// headroom is the space before a read for the bytes that the read before it
// left over. 3 bytes would do, but the kernel copies to a page boundary several
// times faster.
const headroom = 4096

// pieces cuts a command's output into pieces of text for C. Output that is
// UTF-8 already is passed on in the very buffer that it was read into: the
// bytes that the last read left over are copied in front of it, and a NUL is
// put behind it.
type pieces struct {
	buffer  []byte                         // headroom, space for a read, and space for a NUL
	left    [2][]byte                      // for each stream, the beginning of a character whose rest has not come
	cleaned []byte                         // the present piece, if it had to be cleaned
	emit    func(stderr bool, text []byte) // text has a NUL behind it, which its length does not count
}

func newPieces(emit func(stderr bool, text []byte)) *pieces {
	return &pieces{buffer: make([]byte, headroom+core.OutputBuffer+1), emit: emit}
}

// room returns the buffer to read into.
func (p *pieces) room() []byte { return p.buffer[headroom : len(p.buffer)-1] }

// read passes on what a read of n bytes put at the beginning of room.
func (p *pieces) read(stderr bool, n int) {
	left := p.of(stderr)
	begin, end := headroom-len(*left), headroom+n
	copy(p.buffer[begin:], *left)
	cut := end - api.Partial(p.buffer[begin:end])
	*left = append((*left)[:0], p.buffer[cut:end]...)
	p.put(stderr, p.buffer[begin:cut])
}

// flush passes on what both streams left over: characters that never ended.
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
	text = append(text, 0) // in the buffer: overwrites bytes that were saved in left
	p.emit(stderr, text[:len(text)-1])
}

func (p *pieces) of(stderr bool) *[]byte {
	if stderr {
		return &p.left[1]
	}
	return &p.left[0]
}
