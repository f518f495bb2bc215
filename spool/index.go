package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Stream is one of the two that a command writes.
type Stream int

// The streams. A terminal has Stdout alone.
const (
	Stdout Stream = iota
	Stderr
)

// mark is a place in an exec's output: how much of each stream lies before it.
type mark [2]int64

func (m mark) within(sizes mark) bool {
	return m[Stdout] >= 0 && m[Stdout] <= sizes[Stdout] && m[Stderr] >= 0 && m[Stderr] <= sizes[Stderr]
}

func (m mark) total() int64 { return m[Stdout] + m[Stderr] }

// The index is a row of marks of 16 bytes. Mark N is where event N ends; it
// differs from mark N-1 in one stream, so both together tell that event's
// stream and bytes. In the place of mark 0, which is {0, 0}, stand the magic
// number and how many marks were dropped. A mark that was cut off by a kill is
// no mark: it was never told to a reader.
const (
	indexSuffix = ".index"
	markSize    = 16
	magic       = "spool\x00\x00\x01"
)

// errDamaged is in the chain of every failure that an index's bytes caused.
var errDamaged = errors.New("the index of the output is damaged")

type index struct {
	f       *os.File // nil until there is a mark
	n       int64    // marks
	dropped int64    // of these, the oldest: their output has gone
	base    mark     // mark dropped
	last    mark     // mark n
}

// openIndex reads the index of an exec; one without is empty.
func openIndex(name string) (index, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return index{}, nil
	}
	if err != nil {
		return index{}, err
	}
	x := index{f: f}
	if err := x.load(); err != nil {
		_ = f.Close()
		return index{}, err
	}
	return x, nil
}

func (x *index) load() error {
	info, err := x.f.Stat()
	if err != nil {
		return err
	}
	slots := info.Size() / markSize
	if slots == 0 { // killed before its first mark
		return nil
	}
	var head [markSize]byte
	if _, err := x.f.ReadAt(head[:], 0); err != nil {
		return err
	}
	if string(head[:8]) != magic {
		return fmt.Errorf("%w: no magic number", errDamaged)
	}
	x.n = slots - 1
	x.dropped = int64(binary.LittleEndian.Uint64(head[8:]))
	if x.dropped < 0 || x.dropped > x.n {
		return fmt.Errorf("%w: %d of %d marks dropped", errDamaged, x.dropped, x.n)
	}
	if x.base, err = x.at(x.dropped); err == nil {
		x.last, err = x.at(x.n)
	}
	return err
}

// at reads mark i. A failed read of a reader's own is what it is; marks that
// were dropped read as anything.
func (x *index) at(i int64) (mark, error) {
	var m [1]mark
	err := x.read(i, m[:])
	return m[0], err
}

// read fills to with the marks from i on.
func (x *index) read(i int64, to []mark) error {
	if i == 0 {
		to[0] = mark{}
		i, to = 1, to[1:]
	}
	if len(to) == 0 {
		return nil
	}
	b := make([]byte, len(to)*markSize)
	if _, err := x.f.ReadAt(b, i*markSize); err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	for k := range to {
		to[k] = decodeMark(b[k*markSize:])
	}
	return nil
}

func decodeMark(b []byte) mark {
	return mark{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
}

func (m mark) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m[Stdout]))
	return binary.LittleEndian.AppendUint64(b, uint64(m[Stderr]))
}

// add writes marks behind the last one; the file named name is made with the
// first. Nothing has changed when it fails.
func (x *index) add(name string, marks []mark) error {
	b, at := make([]byte, 0, (len(marks)+1)*markSize), (x.n+1)*markSize
	if x.f == nil {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		x.f = f
	}
	if x.n == 0 {
		b, at = x.head(b), 0
	}
	for _, m := range marks {
		b = m.append(b)
	}
	if _, err := x.f.WriteAt(b, at); err != nil {
		return err
	}
	x.n += int64(len(marks))
	x.last = marks[len(marks)-1]
	return nil
}

func (x *index) head(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(append(b, magic...), uint64(x.dropped))
}

// drop forgets all marks below n, whose mark is base. The file says so before
// any output goes: a kill in between costs space, not truth.
func (x *index) drop(n int64, base mark) error {
	x.dropped, x.base = n, base
	_, err := x.f.WriteAt(x.head(nil), 0)
	return err
}

// span says what event between two marks that follow each other is.
func span(from, to mark) (Stream, error) {
	out, err := to[Stdout]-from[Stdout], to[Stderr]-from[Stderr]
	switch {
	case out > 0 && out <= MaxEvent && err == 0:
		return Stdout, nil
	case err > 0 && err <= MaxEvent && out == 0:
		return Stderr, nil
	}
	return 0, fmt.Errorf("%w: from %d to %d", errDamaged, from, to)
}

// check reads the whole index as one that another process has written. What
// is no mark, or lies behind the output, ends it; the rest is cut off.
func (x *index) check(sizes mark) error {
	if x.f == nil {
		return nil
	}
	from, good := x.base, x.dropped
	if !from.within(sizes) {
		return fmt.Errorf("%w: it begins at %d", errDamaged, from)
	}
	var block [256]mark
	for good < x.n {
		part := block[:min(int64(len(block)), x.n-good)]
		if err := x.read(good+1, part); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for _, to := range part {
			if _, err := span(from, to); err != nil || !to.within(sizes) {
				return x.cut(good, from)
			}
			from, good = to, good+1
		}
	}
	return x.cut(good, from)
}

// cut makes mark n the last one.
func (x *index) cut(n int64, last mark) error {
	x.n, x.last = n, last
	if n == 0 {
		return x.f.Truncate(0) // the head comes with the first mark
	}
	return x.f.Truncate((n + 1) * markSize)
}

func (x *index) close() {
	if x.f != nil {
		_ = x.f.Close()
	}
}

// punch makes a hole of whole pages; where the file system can't, space is
// not given back, which the limit does not depend on.
func punch(f *os.File, from, to int64) {
	const page = 4096
	from, to = (from+page-1)/page*page, to/page*page
	if f != nil && to > from {
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
	}
}
