package gunzip

import "encoding/binary"

// decode unpacks a coded block until it ends or the output buffer is full. It
// keeps the reader's state in local variables and calls only functions that are
// inlined, because this loop does most of the work: a call in each turn would
// cost a third of the speed.
func (z *Reader) decode() error {
	in, out, floor := z.in, z.out, z.floor
	b, n, pos, op := z.b, z.n, z.pos, z.op
turn:
	for op < window+outSize {
		if pos > z.end-ahead {
			z.b, z.n, z.pos, z.op = b, n, pos, op
			if z.short() {
				return z.cut()
			}
			z.fill()
			pos = z.pos
		}
		b, n, pos = refilled(in, b, n, pos)
		e := z.lit[b&(1<<litBits-1)]
		for i := 0; e&literal != 0; i++ {
			out[op] = byte(e >> 16)
			op++
			b, n = b>>(e&63), n-uint(e&63)
			if i == 2 {
				continue turn
			}
			e = z.lit[b&(1<<litBits-1)]
		}
		b, n, pos = refilled(in, b, n, pos) // a match takes up to 48 bits
		if e&special != 0 {
			e, b, n = e.whole(z.lit[:], litBits, b, n)
			if e&literal != 0 {
				out[op] = byte(e >> 16)
				op++
				b, n = b>>(e&63), n-uint(e&63)
				continue
			}
			if e&special != 0 {
				z.b, z.n, z.pos, z.op = b>>(e&63), n-uint(e&63), pos, op
				if e&last == 0 {
					return z.corrupt()
				}
				return z.finish()
			}
		}
		length := e.number(b)
		b, n = b>>(e&63), n-uint(e&63)

		e = z.dist[b&(1<<distBits-1)]
		e, b, n = e.whole(z.dist[:], distBits, b, n)
		distance := e.number(b)
		b, n = b>>(e&63), n-uint(e&63)
		if e&special != 0 || distance > op-floor {
			z.b, z.n, z.pos, z.op = b, n, pos, op
			return z.corrupt()
		}
		repeatBytes(out, op, distance, length)
		op += length
	}
	z.b, z.n, z.pos, z.op = b, n, pos, op
	return nil
}

// refilled does what [Reader.refill] does, when there is enough input.
func refilled(in []byte, b uint64, n uint, pos int) (uint64, uint, int) {
	return b | binary.LittleEndian.Uint64(in[pos:])<<(n&63), n | 56, pos + int((63-n)>>3)
}

// whole returns the entry of a code that may be longer than bits. The entry of
// a longer code is further on in the table, at the index that the next bits of
// b select. The entry of a shorter code is returned as it is.
func (e entry) whole(table []entry, bits uint, b uint64, n uint) (entry, uint64, uint) {
	if e&longer != 0 {
		b, n = b>>bits, n-bits
		e = table[int(e>>16)+int(b&(1<<(maxBits-bits)-1))]
	}
	return e, b, n
}

// number returns the number that the entry stands for. It includes the extra
// bits, which are in b.
func (e entry) number(b uint64) int {
	return int(e>>16) + int(b&(1<<(e&63)-1)>>(e>>8&15))
}

// repeatBytes writes length bytes at op that repeat those distance bytes
// before. It may write up to seven bytes more.
func repeatBytes(out []byte, op, distance, length int) {
	from := op - distance
	switch {
	case distance >= length && length > 32:
		copy(out[op:op+length], out[from:])
	case distance >= 8:
		for end := op + length; op < end; op, from = op+8, from+8 {
			binary.LittleEndian.PutUint64(out[op:], binary.LittleEndian.Uint64(out[from:]))
		}
	default:
		for i := range length {
			out[op+i] = out[from+i]
		}
	}
}
