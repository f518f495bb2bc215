// Package gunzip unpacks gzip (RFC 1952, 1951) fast, because importing a layer
// takes as long as unpacking it. It accepts and refuses the same input as
// [compress/gzip].
//
// Input is loaded into a bit buffer eight bytes at a time, and up to eleven
// bits of it are looked up at once. The input buffer is followed by zeros and
// the output buffer by spare room, so that the loop need not check for their
// ends at each step. Whether it read past the end of the input is checked
// afterwards.
package gunzip

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// The errors of an invalid stream. A stream that ends too early is
// io.ErrUnexpectedEOF.
var (
	ErrHeader   = errors.New("gzip: invalid header")
	ErrChecksum = errors.New("gzip: invalid checksum")
	ErrCorrupt  = errors.New("gzip: corrupt data")
)

const (
	inSize  = 128 << 10
	outSize = 256 << 10
	window  = 32 << 10 // how far back a match may refer
	// slack is how many bytes one turn of the loop may write: three
	// literals, a match, and the rest of the match's last eight bytes.
	slack = 3 + maxMatch + 8
	// ahead is how many bytes of input one turn may take. pad is how many
	// bytes it may look at after the end of the input, when it started
	// before the end.
	ahead = 32
	pad   = 2 * ahead
)

// Reader unpacks a stream of one or more gzip members.
type Reader struct {
	r   io.Reader
	err error // the error of r; io.EOF at its end

	in  []byte // input that was read, followed by zeros for the bit buffer
	pos int    // the next byte for the bit buffer
	end int    // the end of the input that was read
	b   uint64 // the bit buffer; the next bit is the lowest
	n   uint   // how many bits of b count

	out    []byte // the last window bytes, then new ones
	op     int    // the end of the new bytes
	given  int    // the end of the bytes that Read has returned
	floor  int    // where the member begins: no match may refer to bytes before it
	sum    uint32
	size   uint32 // bytes of the member so far
	failed error

	block   block
	left    int // bytes left of a stored block
	lit     [litSize]entry
	dist    [distSize]entry
	lengths [maxLit + maxDist]byte
}

// NewReader returns a reader of r, whose first header it has read. Errors:
// ErrHeader, and those of r.
func NewReader(r io.Reader) (*Reader, error) {
	z := &Reader{r: r, in: make([]byte, inSize+pad), out: make([]byte, window+outSize+slack)}
	z.failed = z.header()
	if errors.Is(z.failed, io.EOF) {
		z.failed = io.ErrUnexpectedEOF
	}
	return z, z.failed
}

// Read implements [io.Reader].
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

// slide makes room for new bytes. All bytes must have been returned by Read.
func (z *Reader) slide() {
	if gone := z.op - window; gone > 0 {
		copy(z.out, z.out[gone:z.op])
		z.op, z.given, z.floor = window, window, max(z.floor-gone, 0)
	}
}

// more unpacks until the output buffer is full or the member ends.
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

// trailer compares the member with the checksum and size in its trailer.
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

// header reads the header of a member. Errors: io.EOF if no member follows.
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

// text skips a name or comment. Like compress/gzip, it accepts up to 511 bytes.
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

// bytes reads whole bytes. The bit buffer must be empty.
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

// align returns the whole bytes of the bit buffer to the input and drops the
// remaining bits.
func (z *Reader) align() {
	z.pos -= int(z.n >> 3)
	z.b, z.n = 0, 0
}

// fill reads until the input buffer holds as much as one turn of a loop looks
// at, or the source ends. Zeros follow the end of the input; see short.
func (z *Reader) fill() {
	if z.err != nil {
		return
	}
	keep := min(z.pos, 8) // bytes that align may return to the input
	z.pos, z.end = keep, copy(z.in, z.in[z.pos-keep:z.end])
	for z.err == nil && z.end-z.pos < ahead {
		var n int
		n, z.err = z.r.Read(z.in[z.end:inSize])
		z.end += n
	}
	clear(z.in[z.end : z.end+pad])
}

// short reports whether more bits were taken than the input has.
func (z *Reader) short() bool { return z.pos-int(z.n>>3) > z.end }

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
