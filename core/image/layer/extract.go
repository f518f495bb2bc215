// Package layer turns the tar stream of one image layer into a directory that
// overlayfs can use (mounted with userxattr).
//
// Tars are foreign and hostile. Three walls stand around them:
//   - [Extract] resolves every name with openat2(RESOLVE_BENEATH) and refuses
//     what no honest tar holds;
//   - [Child] runs it in a process of its own that is locked into the directory,
//     with no rights but those over files;
//   - [Limits] bounds what a tar can make of the disk.
package layer

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// Limits bounds one tar.
type Limits struct {
	Entries int64 // names, with the directories that a tar leaves out
	Bytes   int64 // of all files together, holes included
}

// DefaultLimits are for use. A full desktop system has some 300,000 names; a
// tar of 10^6 is there to use up a disk's inodes.
var DefaultLimits = Limits{Entries: 1 << 19, Bytes: 64 << 30}

const (
	// maxID is the last of the ids that a box has.
	maxID = 1<<16 - 1
	// maxPending bounds the names of directories kept until the end, in bytes.
	maxPending = 64 << 20
	// readAhead holds many small entries: a read for each is slow.
	readAhead = 256 << 10
	// hole is the unit in which zeros become holes.
	hole = 64 << 10
)

// Extract reads a plain tar from r up to the end of r and extracts it into the
// empty directory root. Whiteouts become those of overlayfs. Owners, modes,
// times, hard links, holes, user.* attributes and file capabilities are kept;
// other attributes, and devices below dev/, are left out: a box has its own.
// It must hold the rights of root over files. What it made up to a failure
// stays, for the caller to remove.
// Errors: Image (hostile, damaged or past lim), Storage.
func Extract(r io.Reader, root *os.File, lim Limits) error {
	x := &extractor{
		tree:  tree{root: int(root.Fd()), fd: -1, left: lim.Entries},
		bytes: lim.Bytes,
		buf:   make([]byte, hole),
	}
	defer x.forget()
	defer runtime.KeepAlive(root) // or the collector closes its descriptor
	if err := unix.Fchmod(x.root, 0o755); err != nil {
		return failed(".", err)
	}
	in := bufio.NewReaderSize(r, readAhead)
	source := &marked{r: in}
	if err := x.entries(tar.NewReader(source)); err != nil {
		return err
	}
	if source.ended {
		return fault.New(fault.Image, "damaged tar: it ends before its end mark")
	}
	if err := x.dirsTimes(); err != nil {
		return err
	}
	return x.drain(in)
}

// marked tells whether a tar ended with its stream instead of its end mark,
// which the tar reader takes for the same: half a tar cut between two entries
// would pass for a whole one.
type marked struct {
	r     io.Reader
	ended bool
}

func (m *marked) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.ended = m.ended || errors.Is(err, io.EOF)
	return n, err
}

// extractor is the state of one Extract.
type extractor struct {
	tree
	bytes   int64 // still allowed
	buf     []byte
	dirs    []dir // whose times are set last: making an entry changes them
	pending int   // bytes of their names
}

type dir struct {
	name  string
	mtime unix.Timespec
}

func (x *extractor) entries(tr *tar.Reader) error {
	for {
		h, err := tr.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath): // we look ourselves
			return fault.Wrap(fault.Image, err, "damaged tar")
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue // a comment, as git writes it
		}
		if err := x.entry(h, tr); err != nil {
			return err
		}
	}
}

// entry makes what one header says.
func (x *extractor) entry(h *tar.Header, content io.Reader) error {
	name, err := x.check(h)
	if err != nil {
		return err
	}
	if name == "." {
		return x.rootDir(h)
	}
	if deviceOfDev(h, name) {
		return nil
	}
	fd, base, err := x.parent(name)
	if err != nil {
		return failed(name, err)
	}
	if done, err := x.whiteout(fd, name, base); done {
		return err
	}
	if err := x.make(h, place{fd, base, name}, content); err != nil {
		return failed(name, err)
	}
	return nil
}

// check refuses what no honest tar holds, and gives the entry's clean name.
func (x *extractor) check(h *tar.Header) (string, error) {
	name, problem := clean(h.Name)
	if problem != "" {
		return "", refused(h.Name, "%s", problem)
	}
	if err := x.count(); err != nil {
		return "", err
	}
	if h.Uid < 0 || h.Uid > maxID || h.Gid < 0 || h.Gid > maxID {
		return "", refused(name, "owner %d:%d, a box has the ids 0 to %d only", h.Uid, h.Gid, maxID)
	}
	if h.Size > x.bytes {
		return "", fault.New(fault.Image, "the tar holds too much: %s would take it over the limit", quote(name))
	}
	x.bytes -= h.Size
	return name, nil
}

// rootDir takes the layer's own owner, mode and time.
func (x *extractor) rootDir(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return refused(".", "the root is not a directory")
	}
	if err := x.dress(h, x.root, "."); err != nil {
		return failed(".", err)
	}
	return x.later(h, ".")
}

// later remembers to set a directory's time.
func (x *extractor) later(h *tar.Header, name string) error {
	if x.pending += len(name); x.pending > maxPending {
		return fault.New(fault.Image, "the tar holds too much: names of directories of over %d bytes", maxPending)
	}
	x.dirs = append(x.dirs, dir{name, timespec(h.ModTime)})
	return nil
}

func (x *extractor) dirsTimes() error {
	for _, f := range x.dirs {
		fd, base, err := x.parent(f.name)
		if err == nil {
			err = setTime(fd, base, f.mtime)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) { // else: a later entry took its place
			return failed(f.name, err)
		}
	}
	return nil
}

// drain reads what stands behind the end of the tar: padding, by right. The
// digest of a layer counts it.
func (x *extractor) drain(r io.Reader) error {
	n, err := io.CopyN(io.Discard, r, x.bytes+1)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fault.Wrap(fault.Image, err, "damaged tar")
	}
	return fault.New(fault.Image, "the tar holds too much: over %d bytes behind its end", n-1)
}
