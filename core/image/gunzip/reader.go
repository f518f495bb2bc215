// Package gunzip unpacks gzip (RFC 1952, 1951), fast: a layer takes as long to
// import as this code takes to unpack it. It takes and refuses what
// [compress/gzip] does.
//
// Eight bytes of input go into a buffer of bits at a time, and up to eleven
// bits of that are looked up at once. Behind the input there are zeros and
// behind the output there is room, so that the loop need not look for the ends
// at each step; whether it went past the input is found afterwards.
package gunzip

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// Failures of a stream, beside io.ErrUnexpectedEOF where it ends too early.
var (
	ErrHeader   = errors.New("gzip: invalid header")
	ErrChecksum = errors.New("gzip: invalid checksum")
	ErrCorrupt  = errors.New("gzip: corrupt data")
)

const (
	inSize  = 128 << 10
	outSize = 256 << 10
	window  = 32 << 10 // how far back a match may reach
	// slack is how much one turn of the loop may write: three literals, a
	// match, and the rest of its last eight bytes.
	slack = 3 + maxMatch + 8
	// ahead is how much input one turn may take, and pad how much it may
	// look at behind the end, from where it was not short yet.
	ahead = 32
	pad   = 2 * ahead
)

// Reader unpacks a stream of one gzip member after the other.
type Reader struct {
	r   io.Reader
	err error // of r; io.EOF at its end

	in  []byte // what was read; behind its end are zeros for the bit buffer
	pos int    // where the bit buffer goes on
	end int    // of what was read
	b   uint64 // bits that were taken from in, the next one lowest
	n   uint   // how many of them count

	out    []byte // window, then new bytes
	op     int    // their end
	given  int    // up to here they were given to the caller
	floor  int    // where the member begins: no match reaches below
	sum    uint32
	size   uint32 // of the member
	failed error

	block   block
	left    int // bytes of a stored block
	lit     [litSize]entry
	dist    [distSize]entry
	lengths [maxLit + maxDist]byte
}

// NewReader reads the first header. Errors: ErrHeader, and those of r.
func NewReader(r io.Reader) (*Reader, error) {
	z := &Reader{r: r, in: make([]byte, inSize+pad), out: make([]byte, window+outSize+slack)}
	z.failed = z.header()
	if errors.Is(z.failed, io.EOF) {
		z.failed = io.ErrUnexpectedEOF
	}
	return z, z.failed
}

// Read is [io.Reader].
func (z *Reader) Read(p []byte) (int, error) {
	for z.given == z.op {
		if z.failed != nil {
			return 0, z.failed
		}
		z.slide()
		z.failed = z.more()
	}
	n := copy(p, z.out[z.given:z.op])
	z.given += n
	return n, nil
}

// slide makes room for new bytes. All were given.
func (z *Reader) slide() {
	if gone := z.op - window; gone > 0 {
		copy(z.out, z.out[gone:z.op])
		z.op, z.given, z.floor = window, window, max(z.floor-gone, 0)
	}
}

// more unpacks until there is no more room, or the member ends.
func (z *Reader) more() error {
	from := z.op
	err := z.blocks()
	z.sum = crc32.Update(z.sum, crc32.IEEETable, z.out[from:z.op])
	z.size += uint32(z.op - from)
	if err != nil || z.block != none {
		return err
	}
	if err := z.trailer(); err != nil {
		return err
	}
	return z.header()
}

// trailer compares the member with what its end says of it.
func (z *Reader) trailer() error {
	var t [8]byte
	z.align()
	if err := z.bytes(t[:]); err != nil {
		return unexpected(err)
	}
	if binary.LittleEndian.Uint32(t[:4]) != z.sum || binary.LittleEndian.Uint32(t[4:]) != z.size {
		return ErrChecksum
	}
	return nil
}

// header begins a member. Errors: io.EOF where there is none.
func (z *Reader) header() error {
	var h [10]byte
	if err := z.bytes(h[:1]); err != nil {
		return err
	}
	if err := z.bytes(h[1:]); err != nil {
		return unexpected(err)
	}
	const text, sum, extra, name, comment = 1, 2, 4, 8, 16
	flags := h[3]
	if h[0] != 0x1f || h[1] != 0x8b || h[2] != 8 {
		return ErrHeader
	}
	z.sum = crc32.ChecksumIEEE(h[:])
	if flags&extra != 0 {
		var size [2]byte
		if err := z.headerBytes(size[:]); err != nil {
			return err
		}
		if err := z.headerBytes(make([]byte, binary.LittleEndian.Uint16(size[:]))); err != nil {
			return err
		}
	}
	for _, flag := range []byte{name, comment} {
		if flags&flag == 0 {
			continue
		}
		if err := z.text(); err != nil {
			return err
		}
	}
	if want := uint16(z.sum); flags&sum != 0 {
		var got [2]byte
		if err := z.headerBytes(got[:]); err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(got[:]) != want {
			return ErrHeader
		}
	}
	z.sum, z.size, z.floor, z.block = 0, 0, z.op, between
	return nil
}

// text passes a name or comment, of which compress/gzip takes 511 bytes.
func (z *Reader) text() error {
	var c [1]byte
	for range 512 {
		if err := z.headerBytes(c[:]); err != nil || c[0] == 0 {
			return err
		}
	}
	return ErrHeader
}

func (z *Reader) headerBytes(p []byte) error {
	err := unexpected(z.bytes(p))
	z.sum = crc32.Update(z.sum, crc32.IEEETable, p)
	return err
}

// bytes takes whole bytes, while the bit buffer is empty.
func (z *Reader) bytes(p []byte) error {
	for len(p) > 0 {
		if z.pos == z.end {
			z.fill()
		}
		if z.pos == z.end {
			return z.err
		}
		n := copy(p, z.in[z.pos:z.end])
		z.pos += n
		p = p[n:]
	}
	return nil
}

// align gives whole bytes of the bit buffer back and drops the rest of one.
func (z *Reader) align() {
	z.pos -= int(z.n >> 3)
	z.b, z.n = 0, 0
}

// fill reads until there is as much as one turn of a loop looks at, or the
// source ends. Zeros stand behind its end: who takes them is short.
func (z *Reader) fill() {
	if z.err != nil {
		return
	}
	keep := min(z.pos, 8) // for align to give back
	z.pos, z.end = keep, copy(z.in, z.in[z.pos-keep:z.end])
	for z.err == nil && z.end-z.pos < ahead {
		var n int
		n, z.err = z.r.Read(z.in[z.end:inSize])
		z.end += n
	}
	clear(z.in[z.end : z.end+pad])
}

// short tells whether more bits were taken than there are.
func (z *Reader) short() bool { return z.pos-int(z.n>>3) > z.end }

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
