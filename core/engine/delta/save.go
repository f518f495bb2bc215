package delta

import (
	"archive/tar"
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

const (
	blockSize = 256 << 10
	// maxPieces bounds the pieces of data of one file that are written down, so that their
	// list fits into a header, which may have 1 MiB. Of a file with more, the holes behind
	// them become zeros.
	maxPieces = 16 << 10
)

// Save writes to w what the files below root differ from those below image. A file whose
// inode has changed at since or later differs; one that has changed before, as a clock
// that was set back would have it, differs if its type, mode, size or time does. Errors:
// Storage, those of w.
func Save(w io.Writer, root, image *os.File, since time.Time) error {
	compressed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "compress what the box has changed")
	}
	out := bufio.NewWriterSize(compressed, blockSize)
	s := saver{root: root, image: image, since: since, tw: tar.NewWriter(out), links: map[inode]string{}, buf: make([]byte, blockSize)}
	err = s.all()
	return errors.Join(err, s.tw.Close(), out.Flush(), compressed.Close())
}

// inode is a file, whatever its names.
type inode struct {
	major, minor uint32
	ino          uint64
}

type saver struct {
	root, image *os.File
	since       time.Time
	tw          *tar.Writer
	dirs        []string         // that are still to be looked at, the next one last
	links       map[inode]string // the first names of files with several
	buf         []byte
}

func (s *saver) all() error {
	st, err := look(int(s.root.Fd()), ".")
	if err == nil {
		err = s.header(int(s.root.Fd()), ".", &st, tar.Header{Typeflag: tar.TypeDir, Name: "./"})
	}
	if err != nil {
		return failed(err, "save %.200q", "/")
	}
	for s.dirs = []string{"."}; len(s.dirs) > 0; {
		last := len(s.dirs) - 1
		name := s.dirs[last]
		s.dirs = s.dirs[:last]
		if err := s.directory(name); err != nil {
			return failed(err, "save the directory %.200q", name)
		}
	}
	return nil
}

// directory saves what a directory holds. It opens it by its whole name, so that however
// deep the tree is, few descriptors are open.
func (s *saver) directory(name string) error {
	now, err := openDir(int(s.root.Fd()), name)
	if err != nil {
		return err
	}
	defer now.Close()
	names, err := now.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	was, err := s.before(name, names)
	if was != nil {
		defer was.Close()
	}
	if err != nil {
		return err
	}
	for _, base := range names {
		if err := s.entry(now, was, base, within(name, base)); err != nil {
			return failed(err, "save %.200q", within(name, base))
		}
	}
	return nil
}

// before opens what the image has as a directory, nil for nothing, and saves which of its
// names there are no more.
func (s *saver) before(name string, names []string) (*os.File, error) {
	was, err := openDir(int(s.image.Fd()), name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	old, err := was.Readdirnames(-1)
	if err != nil {
		return was, err
	}
	for _, base := range old {
		if _, there := slices.BinarySearch(names, base); there {
			continue
		}
		err := s.tw.WriteHeader(&tar.Header{
			Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: within(name, base), PAXRecords: map[string]string{recordRemoved: "1"},
		})
		if err != nil {
			return was, err
		}
	}
	return was, nil
}

// entry saves one name, if it differs, and notes a directory for later.
func (s *saver) entry(now, was *os.File, base, name string) error {
	dir := int(now.Fd())
	st, err := look(dir, base)
	if err != nil {
		return err
	}
	if mounted(&st) {
		return nil
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if isDir {
		s.dirs = append(s.dirs, name)
	}
	if !s.differs(&st, was, base) {
		return nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return s.header(dir, base, &st, tar.Header{Typeflag: tar.TypeDir, Name: name + "/"})
	case unix.S_IFREG, unix.S_IFLNK, unix.S_IFIFO:
		return s.leaf(dir, base, name, &st)
	}
	return nil // a socket, on which nobody listens any more; a box can't make devices
}

// differs reports whether a name is not what it is in the image.
func (s *saver) differs(st *unix.Statx_t, was *os.File, base string) bool {
	if was == nil || !timeOf(st.Ctime).Before(s.since) {
		return true
	}
	old, err := look(int(was.Fd()), base)
	return err != nil || old.Mode != st.Mode || old.Mtime != st.Mtime || old.Size != st.Size && st.Mode&unix.S_IFMT != unix.S_IFDIR
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

// leaf saves a file, a symbolic link or a pipe, or a link to one that was saved under
// another name.
func (s *saver) leaf(dir int, base, name string, st *unix.Statx_t) error {
	h := tar.Header{Name: name}
	if st.Nlink > 1 {
		same := inode{st.Dev_major, st.Dev_minor, st.Ino}
		if first, ok := s.links[same]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return s.header(dir, base, st, h)
		}
		s.links[same] = name
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		n, err := unix.Readlinkat(dir, base, s.buf)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(s.buf[:n])
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	default:
		return s.file(dir, base, st, h)
	}
	return s.header(dir, base, st, h)
}

// header writes the header of a name.
func (s *saver) header(dir int, base string, st *unix.Statx_t, h tar.Header) error {
	h.Format, h.Mode, h.Uid, h.Gid, h.ModTime = tar.FormatPAX, int64(st.Mode&0o7777), int(st.Uid), int(st.Gid), timeOf(st.Mtime)
	if h.Typeflag == tar.TypeDir {
		fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := s.attributes(fd, &h); err != nil {
			return err
		}
	}
	return s.tw.WriteHeader(&h)
}

// file writes a regular file.
func (s *saver) file(dir int, base string, st *unix.Statx_t, h tar.Header) error {
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(fd), base)
	defer from.Close()
	h.Typeflag = tar.TypeReg
	if err := s.attributes(fd, &h); err != nil {
		return err
	}
	pieces, err := s.pieces(fd, st)
	if err != nil {
		return err
	}
	size := int64(st.Size)
	if h.Size = sum(pieces); h.Size < size {
		h.PAXRecords = with(h.PAXRecords, recordSize, strconv.FormatInt(size, 10))
		h.PAXRecords[recordData] = formatPieces(pieces)
	}
	if err := s.header(dir, base, st, h); err != nil {
		return err
	}
	for _, p := range pieces {
		if _, err := io.CopyBuffer(s.tw, io.NewSectionReader(from, p.at, p.length), s.buf); err != nil {
			return err
		}
	}
	return nil
}

// piece is a part of a file that has data.
type piece struct{ at, length int64 }

func sum(pieces []piece) (n int64) {
	for _, p := range pieces {
		n += p.length
	}
	return n
}

// pieces returns where a file has data.
func (s *saver) pieces(fd int, st *unix.Statx_t) (all []piece, err error) {
	size := int64(st.Size)
	for at := int64(0); at < size; {
		if len(all) == maxPieces {
			return append(all, piece{at, size - at}), nil
		}
		from, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // the rest is a hole
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if at, err = unix.Seek(fd, from, unix.SEEK_HOLE); err != nil {
			return nil, err
		}
		at = min(at, size)
		all = append(all, piece{from, at - from})
	}
	return all, nil
}

func formatPieces(pieces []piece) string {
	var b strings.Builder
	for i, p := range pieces {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatInt(p.at, 10) + "," + strconv.FormatInt(p.length, 10))
	}
	return b.String()
}

// attributes adds the extended attributes of an open file to its header.
func (s *saver) attributes(fd int, h *tar.Header) error {
	n, err := unix.Flistxattr(fd, s.buf)
	if errors.Is(err, unix.ENOTSUP) || err == nil && n == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(s.buf[:n]), "\x00"), "\x00") {
		if !kept(name) || strings.Contains(name, "=") { // which a tar can't hold
			continue
		}
		n, err := unix.Fgetxattr(fd, name, s.buf)
		if err != nil {
			return err
		}
		h.PAXRecords = with(h.PAXRecords, recordXattr+name, string(s.buf[:n]))
	}
	return nil
}

func with(records map[string]string, key, value string) map[string]string {
	if records == nil {
		records = map[string]string{}
	}
	records[key] = value
	return records
}
