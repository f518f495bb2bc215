package spool

import (
	"errors"
	"io/fs"
	"os"
	"sort"

	"golang.org/x/sys/unix"

	"sandbox/api"
)

// MaxEvent is the most bytes of output that one event carries.
const MaxEvent = 64 << 10

var suffixes = [2]string{".stdout", ".stderr"}

// output is the files of one exec. Only the pump changes it, and holds the
// exec's lock while it does. Everybody needs that lock to look at it.
type output struct {
	base  string // the path of the files without suffix
	files [2]*os.File
	sizes mark // how many bytes the files hold
	index index
	holds int  // one for the pump and one for each reader: the files are open while it is not 0
	final bool // the command has ended: output that is not in the index is missing
	// passed says that a reader had output by Pass: see folio.
	passed bool
	// removed says that the box was removed: nothing is written to disk any more. A
	// file that is made now would keep the directory from being removed.
	removed bool
}

func (o *output) hold() error {
	if o.holds == 0 {
		if err := o.open(); err != nil {
			o.close()
			return err
		}
	}
	o.holds++
	return nil
}

func (o *output) release() {
	if o.holds--; o.holds == 0 {
		o.close()
	}
}

func (o *output) close() {
	for s, f := range o.files {
		if f != nil {
			_ = f.Close()
		}
		o.files[s] = nil
	}
	o.index.close()
}

// sizesOf returns how many bytes the files of an exec hold.
func sizesOf(base string) (sizes mark, err error) {
	for s, suffix := range suffixes {
		info, statErr := os.Stat(base + suffix)
		switch {
		case statErr == nil:
			sizes[s] = info.Size()
		case !errors.Is(statErr, fs.ErrNotExist):
			err = errors.Join(err, statErr)
		}
	}
	return sizes, err
}

// open opens the files that exist.
func (o *output) open() (err error) {
	for s, suffix := range suffixes {
		f, err := os.OpenFile(o.base+suffix, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		o.files[s] = f
		info, err := f.Stat()
		if err != nil {
			return err
		}
		o.sizes[s] = info.Size()
	}
	if o.index, err = openIndex(o.base + indexSuffix); o.final && errors.Is(err, errDamaged) {
		o.index, err = index{}, nil
	}
	return err
}

// skip has the output go on at a position behind its end, because another server has had
// what is missing. In its place is a hole, and all before it counts as dropped.
func (o *output) skip(to mark) error {
	if to.within(o.sizes) {
		return nil
	}
	for s := range to {
		to[s] = max(to[s], o.sizes[s])
		if to[s] == o.sizes[s] {
			continue
		}
		f, err := o.file(Stream(s))
		if err == nil {
			err = f.Truncate(to[s])
		}
		if err != nil {
			return err
		}
	}
	o.sizes = to
	return o.index.skip(o.base+indexSuffix, to)
}

// file returns the file of a stream. It creates the file when the first byte
// comes, because most execs write to at most one stream.
func (o *output) file(s Stream) (*os.File, error) {
	if o.files[s] == nil && o.removed {
		return nil, os.ErrNotExist
	}
	if o.files[s] == nil {
		f, err := os.OpenFile(o.base+suffixes[s], os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		o.files[s] = f
	}
	return o.files[s], nil
}

// takes is the most bytes that one call moves: the size of an enlarged pipe.
const takes = 1 << 20

// splice moves what is in a pipe into a file. The bytes go into the kernel's
// pages of the file without being copied through this process. It returns 0 at
// the end of the pipe.
func splice(f *os.File, at int64, pipe int) (int64, error) {
	for {
		n, err := unix.Splice(pipe, nil, int(f.Fd()), &at, takes, unix.SPLICE_F_NONBLOCK)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// addEvents adds the events that a stream has had since the last mark.
func (o *output) addEvents(s Stream, whole bool) error {
	marks, err := o.events(s, whole)
	if err != nil || len(marks) == 0 {
		return err
	}
	if o.removed {
		return os.ErrNotExist
	}
	return o.index.add(o.base+indexSuffix, marks)
}

// events returns the marks of the events that a stream has had since the last
// mark. Each event ends with a whole character. At most 3 bytes of an
// incomplete character are left over. They become part of an event once the
// character is complete; if whole is set, at once, because nothing more will
// come.
func (o *output) events(s Stream, whole bool) ([]mark, error) {
	var marks []mark
	m, size := o.index.last, o.sizes[s]
	for m[s] < size {
		end := min(size, m[s]+MaxEvent)
		if !whole || end < size {
			n, err := o.begun(s, m[s], end)
			if err != nil {
				return nil, err
			}
			if end -= n; end == m[s] {
				break
			}
		}
		m[s] = end
		marks = append(marks, m)
	}
	return marks, nil
}

// begun returns how many bytes of an incomplete character are before end.
func (o *output) begun(s Stream, from, end int64) (int64, error) {
	var b [3]byte
	tail := b[:min(3, end-from)]
	if _, err := o.files[s].ReadAt(tail, end-int64(len(tail))); err != nil {
		return 0, err
	}
	return int64(api.Partial(tail)), nil
}

// kept returns how many bytes the output takes on disk.
func (o *output) kept() int64 {
	return o.sizes.total() - o.index.base.total() + markSize*(o.index.n-o.index.dropped)
}

// shrink drops the oldest events until at most size bytes are kept, but only
// events below bound. It returns whether it dropped any.
func (o *output) shrink(size, bound int64) (bool, error) {
	x, end := &o.index, o.sizes.total()+markSize*o.index.n
	var failed error
	n := sort.Search(int(bound-x.dropped), func(i int) bool {
		m, err := x.at(x.dropped + int64(i))
		if err != nil {
			failed = err
		}
		return end-m.total()-markSize*(x.dropped+int64(i)) <= size
	})
	if failed != nil || n == 0 {
		return false, failed
	}
	base, err := x.at(x.dropped + int64(n))
	if err != nil {
		return false, err
	}
	from, was := x.base, x.dropped
	if err := x.drop(x.dropped+int64(n), base); err != nil {
		return false, err
	}
	// The hole begins one block earlier, because a block that was only partly
	// free before may be completely free now.
	block := int64(page)
	if o.passed {
		block = folio
	}
	for s, f := range o.files {
		punch(f, max(0, from[s]-block), base[s], block)
	}
	punch(x.f, max(markSize+1, was*markSize-page), x.dropped*markSize, page)
	return true, nil
}

// page is what a file's space is freed in. The space of output that a reader had by
// Pass is freed in the largest units in which the kernel caches files (2 MiB with
// pages of 4 KiB): of a part of one it overwrites the memory with zeros, which a
// socket may still hold that had it by sendfile(2).
const (
	page  = 4096
	folio = 512 * page
)
