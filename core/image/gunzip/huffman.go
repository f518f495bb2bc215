package gunzip

import "math/bits"

const (
	maxBits  = 15 // the longest code
	maxLit   = 288
	maxDist  = 32
	maxMatch = 258

	// A table is looked up with the next litBits or distBits bits. Codes
	// that are longer have tables of their own behind it. The sizes allow
	// for the worst set of codes, which needs fewer such tables than the
	// first one has entries.
	litBits  = 11
	distBits = 8
	litSize  = 1<<litBits + maxLit<<(maxBits-litBits)
	distSize = 1<<distBits + maxDist<<(maxBits-distBits)
)

// entry says what a code means:
//
//	bits 0-5    how many bits to take, including the extra bits; in a table of
//	            longer codes, how many more bits to take
//	bits 8-11   how many of these bits are the code's own
//	bits 12-15  the kind of entry
//	bits 16-31  the literal, or the number that the extra bits are added to,
//	            or where the table of longer codes begins
type entry uint32

const (
	literal entry = 1 << 15
	// special marks the other entries that are not a match. These bits say
	// which:
	special entry = 1 << 14
	longer  entry = 1 << 13 // refers to a table of longer codes
	last    entry = 1 << 12 // the end of the block; with neither bit, there is no such code
)

func newEntry(value, codeBits, extraBits int) entry {
	return entry(value<<16 | codeBits<<8 | codeBits + extraBits)
}

// litEntry returns the entry for a symbol of the literal and length alphabet.
func litEntry(symbol, codeBits int) entry {
	switch i := symbol - 257; {
	case symbol < 256:
		return newEntry(symbol, codeBits, 0) | literal
	case symbol == 256:
		return newEntry(0, codeBits, 0) | special | last
	case i < 8:
		return newEntry(3+i, codeBits, 0)
	case i == 28:
		return newEntry(maxMatch, codeBits, 0)
	case i > 28:
		return special
	default:
		extra := i/4 - 1
		return newEntry(3+(4+i%4)<<extra, codeBits, extra)
	}
}

// distEntry returns the entry for a symbol of the distance alphabet.
func distEntry(symbol, codeBits int) entry {
	switch {
	case symbol < 4:
		return newEntry(1+symbol, codeBits, 0)
	case symbol > 29:
		return special
	}
	extra := symbol/2 - 1
	return newEntry(1+(2+symbol%2)<<extra, codeBits, extra)
}

// lengthEntry returns the entry for a symbol of the code-length alphabet.
func lengthEntry(symbol, codeBits int) entry { return newEntry(symbol, codeBits, 0) }

// build makes the table of the codes with these lengths. It accepts only a
// complete set of codes, a single code of one bit, or no codes at all; an empty
// set fails when it is used.
func build(table []entry, tableBits int, lengths []byte, of func(symbol, codeBits int) entry) error {
	var count, next [maxBits + 2]int
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	code, used := 0, 0
	for n := 1; n <= maxBits; n++ {
		code = (code + count[n-1]) << 1
		next[n] = code
		used += count[n] << (maxBits - n)
	}
	for i := range table[:1<<tableBits] {
		table[i] = special
	}
	if single := used == 1<<(maxBits-1) && count[1] == 1; used != 1<<maxBits && used != 0 && !single {
		return ErrCorrupt
	}
	end := 1 << tableBits // the end of the tables in use
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		n := int(n)
		reversed := int(bits.Reverse16(uint16(next[n])) >> (16 - n))
		next[n]++
		if n <= tableBits {
			spread(table[:1<<tableBits], reversed, n, of(symbol, n))
			continue
		}
		first := reversed & (1<<tableBits - 1)
		if table[first]&longer == 0 {
			table[first] = entry(end<<16) | special | longer
			for i := range 1 << (maxBits - tableBits) {
				table[end+i] = special
			}
			end += 1 << (maxBits - tableBits)
		}
		at := int(table[first] >> 16)
		spread(table[at:at+1<<(maxBits-tableBits)], reversed>>tableBits, n-tableBits, of(symbol, n-tableBits))
	}
	return nil
}

// spread writes an entry at every index whose low n bits are code.
func spread(table []entry, code, n int, e entry) {
	for i := code; i < len(table); i += 1 << n {
		table[i] = e
	}
}
