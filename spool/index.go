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

// Stream is one of the two streams that a command writes.
type Stream int

// The streams. A terminal has only Stdout.
const (
	Stdout Stream = iota
	Stderr
)

// mark is a position in an exec's output: how many bytes of each stream come
// before it.
type mark [2]int64

func (m mark) within(sizes mark) bool {
	return m[Stdout] >= 0 && m[Stdout] <= sizes[Stdout] && m[Stderr] >= 0 && m[Stderr] <= sizes[Stderr]
}

func (m mark) total() int64 { return m[Stdout] + m[Stderr] }

// The index is a sequence of marks of 16 bytes. Mark N is where event N ends.
// It differs from mark N-1 in one stream, so the two together describe the
// stream and the bytes of event N. Mark 0 is always {0, 0}; its place holds the
// magic number and the number of marks that were dropped. A mark that was only
// partly written when the process was killed does not count: no reader was ever
// told of it.
const (
	indexSuffix = ".index"
	markSize    = 16
	magic       = "spool\x00\x00\x01"
)

// errDamaged is in the chain of every error that is caused by an index's bytes.
var errDamaged = errors.New("the index of the output is damaged")

type index struct {
	f       *os.File // nil until there is a mark
	n       int64    // number of marks, dropped ones included
	dropped int64    // how many of the oldest marks were dropped with their output
	base    mark     // mark dropped
	last    mark     // mark n
}

// openIndex opens the index of an exec. If there is no file, the index is
// empty.
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

// load reads the head, then the number of marks and what else x has of them. In this
// order no more marks are dropped than there are, although another process may add and
// drop some meanwhile.
func (x *index) load() error {
	var head [markSize]byte
	if _, err := x.f.ReadAt(head[:], 0); errors.Is(err, io.EOF) { // the process was killed before it wrote a mark
		return nil
	} else if err != nil {
		return err
	}
	if string(head[:8]) != magic {
		return fmt.Errorf("%w: no magic number", errDamaged)
	}
	info, err := x.f.Stat()
	if err != nil {
		return err
	}
	x.n = info.Size()/markSize - 1
	x.dropped = int64(binary.LittleEndian.Uint64(head[8:]))
	if x.dropped < 0 || x.dropped > x.n {
		return fmt.Errorf("%w: %d of %d marks dropped", errDamaged, x.dropped, x.n)
	}
	if x.base, err = x.at(x.dropped); err == nil {
		x.last, err = x.at(x.n)
	}
	return err
}

// at reads mark i. A dropped mark may read as anything. The error of a failed
// read is returned as it is.
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

// add writes marks behind the last one. The first mark creates the file, with
// the given name. If add fails, the index has not changed.
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

// drop forgets all marks below n, whose mark is base. This is written to the
// file before any output is deleted: if the process is killed in between, that
// costs space, but the index stays true.
func (x *index) drop(n int64, base mark) error {
	x.dropped, x.base = n, base
	_, err := x.f.WriteAt(x.head(nil), 0)
	return err
}

const (
	// strides is how far numbers of events go up when another server has numbered some
	// meanwhile. It is more than that one can have given to output that comes again here,
	// of which a box keeps no more than a few MiB.
	strides = 1 << 26
	// numbered bounds the numbers that such a server is taken to have given to output
	// before that: each event has a byte at least, and a command that prints so many bytes
	// one by one takes a day.
	numbered = 1 << 36
)

// skip has the output go on at base, with numbers of events above those that another
// server may have given. The marks between are a hole in the file.
func (x *index) skip(name string, base mark) error {
	n := max(x.n, min(base.total(), numbered)) + strides
	if err := x.add(name, []mark{base}); err != nil { // so that there is a file
		return err
	}
	if _, err := x.f.WriteAt(base.append(nil), n*markSize); err != nil {
		return err
	}
	x.n, x.last = n, base
	return x.drop(n, base)
}

// span returns the stream of the event between two consecutive marks. Errors:
// errDamaged if they can't be consecutive.
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

// check verifies the whole index that another process has written. Everything
// from the first invalid mark on, or from the first mark that lies beyond the
// output, is cut off.
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
		return x.f.Truncate(0) // the head is written again with the first mark
	}
	return x.f.Truncate((n + 1) * markSize)
}

func (x *index) close() {
	if x.f != nil {
		_ = x.f.Close()
	}
}

// punch frees the blocks of a file that lie whole in a range. A file system that can't
// do that does not free the space; the limit does not depend on it.
func punch(f *os.File, from, to, block int64) {
	from, to = (from+block-1)/block*block, to/block*block
	if f != nil && to > from {
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
	}
}
