package transfer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
)

const (
	// namesAtOnce is how many names of a directory are read at a time.
	namesAtOnce = 1024
	// maxPage bounds the bytes of a page of a list.
	maxPage = 8 << 20
	// looksAtOnce is how many files are looked at before they are sent.
	looksAtOnce = 512
)

// list sends the entries below a directory, in the order of their paths, and
// tells whether there are more than the limit. It follows the links on the way
// to the directory, and none below it. What vanishes meanwhile is left out.
func (r *records) list(m wire.Move) (more bool, err error) {
	fd, err := openAt(unix.AT_FDCWD, m.Path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false, fmt.Errorf("%s: %w", m.Path, err)
	}
	l := lister{records: r, left: m.Limit}
	err = l.directory(fd, "", after(string(m.After)), m.Depth)
	return l.more, err
}

// after returns the names of the path that a page begins behind.
func after(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// lister sends one page of a list.
type lister struct {
	*records
	left int // entries
	more bool
}

// found is what a look at a file has found.
type found struct {
	st  unix.Stat_t
	err error
}

// full tells whether the page is full.
func (l *lister) full() bool { return l.left <= 0 || l.bytes >= maxPage }

// directory sends what is in a directory, whose descriptor it closes. prefix is
// its path with a "/" behind it, or "". behind has the names of the last entry of
// the page before, if that lies in the directory.
func (l *lister) directory(fd int, prefix string, behind []string, depth int) error {
	dir := os.NewFile(uintptr(fd), prefix)
	defer dir.Close()
	last := ""
	if len(behind) > 0 {
		last = behind[0]
		if err := l.resume(fd, prefix, behind, depth); err != nil {
			return err
		}
	}
	for !l.more {
		n := max(l.left, 0) + 1
		names, err := lowest(dir, last, n)
		if err != nil {
			return fmt.Errorf("%s: %w", prefix, err)
		}
		for some := range slices.Chunk(names, looksAtOnce) {
			looked := statAll(fd, some)
			for i, name := range some {
				if err := l.file(fd, prefix, name, &looked[i], depth); err != nil || l.more {
					return err
				}
			}
		}
		if len(names) < n {
			return nil
		}
		last = names[n-1]
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("%s: %w", prefix, err)
		}
	}
	return nil
}

// statAll looks at files of a directory, half of them in another thread: with many files a
// list takes as long as the looks of the kernel at them.
func statAll(dir int, names []string) []found {
	all := make([]found, len(names))
	each := func(from, to int) {
		for i := from; i < to; i++ {
			all[i].err = unix.Fstatat(dir, names[i], &all[i].st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
		}
	}
	if len(names) < looksAtOnce {
		each(0, len(names))
		return all
	}
	var other sync.WaitGroup
	other.Go(func() { each(0, len(names)/2) })
	each(len(names)/2, len(names))
	other.Wait()
	return all
}

// resume sends the rest of a directory that the page before has begun with.
func (l *lister) resume(dir int, prefix string, behind []string, depth int) error {
	if depth <= 1 {
		return nil
	}
	below, err := within(dir, behind[0])
	if err != nil || below < 0 {
		return err
	}
	return l.directory(below, prefix+behind[0]+"/", behind[1:], depth-1)
}

// file sends a file, and what is in it if it is a directory.
func (l *lister) file(dir int, prefix, name string, look *found, depth int) (err error) {
	st := &look.st
	if errors.Is(look.err, unix.ENOENT) {
		return nil
	}
	if look.err != nil {
		return fmt.Errorf("%s: %w", prefix+name, look.err)
	}
	if l.full() {
		l.more = true
		return nil
	}
	target, below := "", vanished
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		target = readLink(dir, name)
	case kind == unix.S_IFDIR && depth > 1:
		if below, err = within(dir, name); err != nil {
			return fmt.Errorf("%s: %w", prefix+name, err)
		}
	}
	e := l.entry(prefix+name, target, st)
	e.Unreadable = below == unreadable
	l.left--
	if err := l.send(e); err != nil || below < 0 {
		return err
	}
	return l.directory(below, prefix+name+"/", nil, depth-1)
}

// These stand for the descriptor of a directory that can't be looked into.
const (
	vanished   = -1
	unreadable = -2
)

// within opens a directory by its name in another one, and no link. It returns
// vanished if something else has taken the name, and unreadable without the right
// to read it.
func within(dir int, name string) (int, error) {
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: resolve | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	switch {
	case errors.Is(err, unix.EACCES):
		return unreadable, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return vanished, nil
	}
	return fd, err
}

// lowest returns the first n names in a directory that come behind last, sorted;
// fewer if there are no more. However many there are, it holds some 2*n of them in
// memory.
func lowest(dir *os.File, last string, n int) ([]string, error) {
	var kept []string
	for {
		names, err := dir.Readdirnames(namesAtOnce)
		for _, name := range names {
			if name > last {
				kept = append(kept, name)
			}
		}
		if len(kept) > 2*n+namesAtOnce || ended(err) {
			slices.Sort(kept)
			kept = kept[:min(n, len(kept))]
		}
		if ended(err) {
			return kept, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// ended tells whether a directory has been read to its end, or was removed.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) }
