// Package layer extracts the tar stream of one image layer into a directory
// that overlayfs can use (mounted with userxattr), and packs such a directory as
// a tar again.
//
// Tars come from strangers and may be hostile. Three defences protect against
// them:
//   - [Extract] resolves every name with openat2(RESOLVE_BENEATH) and refuses
//     what no honest tar holds;
//   - [Child] runs it in a process of its own that is locked into the directory,
//     with no rights except those over files;
//   - [Limits] bounds how much of the disk a tar can use.
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

// Limits bounds what may be extracted from one tar.
type Limits struct {
	Entries int64 // names, including directories that the tar does not list
	Bytes   int64 // total size of all files, including holes
}

// DefaultLimits are the limits for normal use. A full desktop system has some
// 300,000 names; a tar of 10^6 is meant to use up a disk's inodes.
var DefaultLimits = Limits{Entries: 1 << 19, Bytes: 64 << 30}

const (
	// maxID is the highest user or group ID that a box has.
	maxID = 1<<16 - 1
	// maxPending bounds the total length of the directory names that are
	// kept until the end, in bytes.
	maxPending = 64 << 20
	// readAhead is the size of the read buffer. It holds many small
	// entries, because a read call for each would be slow.
	readAhead = 256 << 10
	// hole is the unit in which zeros become holes, in bytes.
	hole = 64 << 10
)

// Extract reads a plain tar from r up to the end of r and extracts it into the
// empty directory root. Whiteouts become those of overlayfs. Owners, modes,
// times, hard links, holes, user.* attributes and file capabilities are kept.
// Other attributes are left out, and so are devices below dev/, because a box
// has devices of its own. Directories that the tar does not list have the time 0,
// so that the same tar always gives the same layer. The process must have the rights of root over files.
// On failure, what was extracted so far is left for the caller to remove.
// Errors: Image (the tar is hostile, damaged or exceeds lim), Storage.
func Extract(r io.Reader, root *os.File, lim Limits) error { return extract(r, root, lim, false) }

// extract is [Extract]. With oneID all becomes root's, who is the only one there is.
func extract(r io.Reader, root *os.File, lim Limits, oneID bool) error {
	x := &extractor{
		oneID: oneID,
		tree:  tree{root: int(root.Fd()), fd: -1, left: lim.Entries, dirs: []dir{{name: "."}}},
		bytes: lim.Bytes,
		buf:   make([]byte, hole),
	}
	defer x.forget()
	defer runtime.KeepAlive(root) // otherwise the garbage collector might close its descriptor
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

// marked detects whether a tar ended with its end mark or just with its stream.
// The tar reader treats both the same, so half a tar that was cut between two
// entries would pass for a whole one.
type marked struct {
	r     io.Reader
	ended bool
}

func (m *marked) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.ended = m.ended || errors.Is(err, io.EOF)
	return n, err
}

// extractor is the state of one [Extract].
type extractor struct {
	tree
	oneID bool
	bytes int64 // bytes that are still allowed
	buf   []byte
}

func (x *extractor) entries(tr *tar.Reader) error {
	for {
		h, err := tr.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath): // check looks for insecure names itself
			return fault.Wrap(fault.Image, err, "damaged tar")
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue // a comment, such as git writes
		}
		if err := x.entry(h, tr); err != nil {
			return err
		}
	}
}

// entry extracts the entry that a header describes.
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

// check refuses what no honest tar holds, and returns the entry's clean name.
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
	if x.oneID {
		h.Uid, h.Gid = 0, 0
	}
	if h.Size > x.bytes {
		return "", fault.New(fault.Image, "the tar holds too much: %s would take it over the limit", quote(name))
	}
	x.bytes -= h.Size
	return name, nil
}

// rootDir sets the layer's own owner, mode and time.
func (x *extractor) rootDir(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return refused(".", "the root is not a directory")
	}
	if err := x.dress(h, x.root, "."); err != nil {
		return failed(".", err)
	}
	return x.later(".", timespec(h.ModTime))
}

func (x *extractor) dirsTimes() error {
	for _, f := range x.dirs {
		fd, base, err := x.parent(f.name)
		if err == nil {
			err = setTime(fd, base, f.mtime)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) { // ENOENT: a later entry took its place
			return failed(f.name, err)
		}
	}
	return nil
}

// drain reads what follows the end of the tar, which should be padding. It must
// be read because the digest of a layer includes it.
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
