package gunzip

import "encoding/binary"

// block is the kind of block that the reader is in.
type block byte

const (
	none    block = iota // after the last block
	between              // before a block's header
	stored
	coded
)

// finalBit is set in block while the reader is in the last block of a member.
const finalBit block = 1 << 7

// blocks unpacks until the output buffer is full or the member ends.
func (z *Reader) blocks() error {
	for z.op < window+outSize {
		var err error
		switch z.block &^ finalBit {
		case none:
			return nil
		case between:
			err = z.begin()
		case stored:
			err = z.copyStored()
		case coded:
			err = z.decode()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish ends a block.
func (z *Reader) finish() error {
	if z.short() {
		return z.cut()
	}
	if z.block&finalBit != 0 {
		z.block = none
	} else {
		z.block = between
	}
	return nil
}

// cut returns the error of a source that failed or ended too early.
func (z *Reader) cut() error { return unexpected(z.err) }

// corrupt returns the error for invalid input. If the input ended too early,
// that is the error instead.
func (z *Reader) corrupt() error {
	if z.short() {
		return z.cut()
	}
	return ErrCorrupt
}

// take returns the next n bits, up to 16. After the end of the input they are
// zeros.
func (z *Reader) take(n uint) int {
	z.refill()
	v := int(z.b & (1<<n - 1))
	z.b >>= n
	z.n -= n
	return v
}

// refill makes sure that the bit buffer holds at least 56 bits. Bits above the
// n that count may be set too: they are the bits that follow in the input.
func (z *Reader) refill() {
	if z.end-z.pos < ahead {
		z.fill()
	}
	if z.pos <= z.end+8 { // otherwise all bits in the buffer are from after the end
		z.b |= binary.LittleEndian.Uint64(z.in[z.pos:]) << (z.n & 63)
		z.pos += int((63 - z.n) >> 3)
	}
	z.n |= 56
}

// begin reads a block's header.
func (z *Reader) begin() error {
	final := block(z.take(1)) << 7
	kind := z.take(2)
	z.block = coded | final
	switch kind {
	case 0:
		z.block = stored | final
		return z.beginStored()
	case 1:
		return z.fixed()
	case 2:
		return z.dynamic()
	}
	return z.corrupt()
}

func (z *Reader) beginStored() error {
	z.align()
	if z.pos > z.end {
		return z.cut()
	}
	var h [4]byte
	if err := z.bytes(h[:]); err != nil {
		return unexpected(err)
	}
	size := binary.LittleEndian.Uint16(h[:2])
	if size != ^binary.LittleEndian.Uint16(h[2:]) {
		return ErrCorrupt
	}
	z.left = int(size)
	return nil
}

func (z *Reader) copyStored() error {
	n := min(z.left, window+outSize-z.op)
	if err := z.bytes(z.out[z.op : z.op+n]); err != nil {
		return unexpected(err)
	}
	z.op += n
	if z.left -= n; z.left == 0 {
		return z.finish()
	}
	return nil
}

// fixed sets the tables of the fixed codes that the format defines.
func (z *Reader) fixed() error {
	l := z.lengths[:maxLit+maxDist]
	for i := range l {
		switch {
		case i < 144:
			l[i] = 8
		case i < 256:
			l[i] = 9
		case i < 280:
			l[i] = 7
		case i < maxLit:
			l[i] = 8
		default:
			l[i] = 5
		}
	}
	return z.tables(l[:maxLit], l[maxLit:])
}

// tables builds both tables, for the literals and lengths and for the
// distances.
func (z *Reader) tables(lit, dist []byte) error {
	if err := build(z.lit[:], litBits, lit, litEntry); err != nil {
		return err
	}
	return build(z.dist[:], distBits, dist, distEntry)
}

// order is the order in which a block lists the lengths of the code-length
// code.
var order = [19]byte{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// lengthBits is the length of the longest code-length code.
const lengthBits = 7

// dynamic reads the codes that a block defines for itself.
func (z *Reader) dynamic() error {
	lits, dists, n := z.take(5)+257, z.take(5)+1, z.take(4)+4
	if lits > 286 || dists > 30 {
		return z.corrupt()
	}
	var codes [len(order)]byte
	for _, symbol := range order[:n] {
		codes[symbol] = byte(z.take(3))
	}
	var table [1 << lengthBits]entry
	if err := build(table[:], lengthBits, codes[:], lengthEntry); err != nil {
		return z.corrupt()
	}
	lengths := z.lengths[:lits+dists]
	for i := 0; i < len(lengths); {
		z.refill()
		e := table[z.b&(1<<lengthBits-1)]
		if e&special != 0 || z.short() {
			return z.corrupt()
		}
		z.take(uint(e & 63))
		n, err := z.repeat(lengths, i, int(e>>16))
		if err != nil {
			return err
		}
		i += n
	}
	if err := z.tables(lengths[:lits], lengths[lits:]); err != nil {
		return z.corrupt()
	}
	return nil
}

// repeat sets the code lengths that a symbol stands for, from index i on, and
// returns how many it set.
func (z *Reader) repeat(lengths []byte, i, symbol int) (int, error) {
	value, n := byte(symbol), 1
	switch {
	case symbol == 16 && i == 0:
		return 0, z.corrupt()
	case symbol == 16:
		value, n = lengths[i-1], 3+z.take(2)
	case symbol == 17:
		value, n = 0, 3+z.take(3)
	case symbol == 18:
		value, n = 0, 11+z.take(7)
	}
	if n > len(lengths)-i {
		return 0, z.corrupt()
	}
	for k := range n {
		lengths[i+k] = value
	}
	return n, nil
}
