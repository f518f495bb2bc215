package transfer

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
)

const (
	tarBuffer = 256 << 10
	// listAtOnce is how many names of a directory are in memory at a time.
	listAtOnce = 256
)

// pack sends a tar of a directory, or of one file. Each name in it begins with
// the last element of the path. The tar holds directories, files and links. It
// leaves out devices, sockets, FIFOs, and files whose contents the kernel makes
// up, such as those of /proc. Hard links become separate files.
func pack(m wire.Move, out *os.File, announce func(int64) error) (wire.Moved, error) {
	fd, st, err := look(m.Path)
	if err != nil {
		return wire.Moved{}, err
	}
	defer unix.Close(fd)
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR || made(fd) {
		return wire.Moved{}, fault.New(fault.InvalidArgument, "%s is neither a regular file nor a directory of files", m.Path)
	}
	if err := announce(-1); err != nil {
		return wire.Moved{}, err
	}
	name := path.Base(path.Clean(m.Path))
	if name == "/" {
		name = "."
	}
	w := bufio.NewWriterSize(out, tarBuffer)
	p := packer{tw: tar.NewWriter(w), buf: make([]byte, tarBuffer)}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = p.dir(fd, name, st)
	} else {
		err = p.file(fd, name)
	}
	if err == nil {
		err = errors.Join(p.tw.Close(), w.Flush())
	}
	return wire.Moved{Size: p.size}, errors.Join(err, out.Close())
}

type packer struct {
	tw   *tar.Writer
	buf  []byte
	size int64
}

// dir adds a directory and everything below it. An entry that is removed
// meanwhile is left out.
func (p *packer) dir(fd int, name string, st unix.Stat_t) error {
	if err := p.tw.WriteHeader(header(tar.TypeDir, name+"/", st)); err != nil {
		return err
	}
	dir, err := reopen(fd, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(listAtOnce)
		for _, n := range names {
			if err := p.entry(fd, n, name+"/"+n); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

func (p *packer) entry(parent int, base, name string) error {
	fd, err := unix.Openat(parent, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return p.link(fd, name, st)
	case made(fd):
		return nil
	case kind == unix.S_IFDIR:
		return p.dir(fd, name, st)
	case kind == unix.S_IFREG:
		return p.file(fd, name)
	}
	return nil
}

func (p *packer) link(fd int, name string, st unix.Stat_t) error {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	h := header(tar.TypeSymlink, name, st)
	h.Linkname = string(target[:n])
	return p.tw.WriteHeader(h)
}

// file adds a file, with as many bytes as it has now.
func (p *packer) file(fd int, name string) error {
	f, err := reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	h := header(tar.TypeReg, name, st)
	h.Size = st.Size
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyBuffer(p.tw, onlyReader{io.LimitReader(f, st.Size)}, p.buf)
	p.size += n
	if err == nil && n < st.Size {
		err = fault.New(fault.InvalidArgument, "%s became shorter while it was read", name)
	}
	return err
}

// onlyReader hides a reader's other methods, so that io.CopyBuffer uses its
// buffer.
type onlyReader struct{ io.Reader }

func header(kind byte, name string, st unix.Stat_t) *tar.Header {
	return &tar.Header{
		Typeflag: kind, Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: time.Unix(st.Mtim.Unix()), Format: tar.FormatPAX,
	}
}
