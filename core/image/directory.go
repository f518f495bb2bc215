package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// packDir returns the tar of a root file system. A goroutine writes it; closing
// the reader ends that goroutine.
func packDir(ctx context.Context, root *os.Root) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		p := packer{root: root, tw: tar.NewWriter(w), links: map[inode]string{}}
		err := fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
			if err == nil && ctx.Err() != nil {
				err = fault.Of(ctx.Err())
			}
			if err == nil {
				err = p.pack(name)
			}
			return err
		})
		if err == nil {
			err = p.tw.Close()
		}
		_ = w.CloseWithError(unreadable(err))
	}()
	return r
}

func unreadable(err error) error {
	if err == nil || fault.Classified(err) {
		return err
	}
	return fault.Wrap(fault.Image, err, "read the directory of the image")
}

// packer is the state of one packDir.
type packer struct {
	root  *os.Root
	tw    *tar.Writer
	dev   uint64 // of the root: the contents of other file systems are left out
	links map[inode]string
}

type inode struct{ dev, ino uint64 }

// pack writes one entry. A directory where another file system is mounted is
// packed empty, because /proc and the like are not part of the image.
func (p *packer) pack(name string) error {
	info, err := p.root.Lstat(name)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fault.New(fault.Internal, "no inode of %s", name)
	}
	if name == "." {
		p.dev = st.Dev
	}
	h := header(name, st)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return p.file(h, st)
	case unix.S_IFDIR:
		return p.dir(h, st)
	case unix.S_IFLNK:
		if h.Linkname, err = p.root.Readlink(name); err != nil {
			return err
		}
		h.Typeflag = tar.TypeSymlink
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case unix.S_IFSOCK:
		return nil // a socket is useless without its listener, which is not in the image
	default:
		return p.device(name)
	}
	if p.linked(h, st) {
		h.Typeflag = tar.TypeLink
	}
	return p.tw.WriteHeader(h)
}

// device refuses a device, except below dev/. Those are left out, because a box
// gets devices of its own.
func (p *packer) device(name string) error {
	if strings.HasPrefix(name, "dev/") {
		return nil
	}
	return fault.New(fault.Image, "%q is a device, which an image must not contain", name)
}

func header(name string, st *syscall.Stat_t) *tar.Header {
	return &tar.Header{
		Format: tar.FormatPAX, Name: name, Mode: int64(st.Mode & 0o7777),
		Uid: int(st.Uid), Gid: int(st.Gid), ModTime: time.Unix(st.Mtim.Unix()),
	}
}

// linked turns h into a link if the inode was already packed under another
// name, and returns whether it did.
func (p *packer) linked(h *tar.Header, st *syscall.Stat_t) bool {
	if st.Nlink < 2 {
		return false
	}
	id := inode{st.Dev, st.Ino}
	first, ok := p.links[id]
	if ok {
		h.Linkname = first
		return true
	}
	p.links[id] = h.Name
	return false
}

func (p *packer) dir(h *tar.Header, st *syscall.Stat_t) error {
	h.Typeflag = tar.TypeDir
	f, err := p.open(h)
	if err != nil {
		return err
	}
	defer f.Close()
	h.Name += "/"
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	if st.Dev != p.dev {
		return fs.SkipDir
	}
	return nil
}

func (p *packer) file(h *tar.Header, st *syscall.Stat_t) error {
	h.Typeflag = tar.TypeReg
	if p.linked(h, st) {
		h.Typeflag = tar.TypeLink
		return p.tw.WriteHeader(h)
	}
	f, err := p.open(h)
	if err != nil {
		return err
	}
	defer f.Close()
	h.Size = st.Size
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(p.tw, f, h.Size); err != nil {
		return fmt.Errorf("%s changed while it was read: %w", h.Name, err)
	}
	return nil
}

// open opens the file or directory that h describes and adds its extended
// attributes to h. It may have been replaced since it was examined: O_NONBLOCK
// prevents that opening a FIFO blocks.
func (p *packer) open(h *tar.Header) (*os.File, error) {
	f, err := p.root.OpenFile(h.Name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if h.PAXRecords, err = attributes(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// attributes returns a file's extended attributes, as PAX records of a tar.
func attributes(f *os.File) (map[string]string, error) {
	names := make([]byte, 64<<10) // the most that Linux allows for the list of names, and for a value
	n, err := unix.Flistxattr(int(f.Fd()), names)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return nil, &fs.PathError{Op: "listxattr", Path: f.Name(), Err: err}
	}
	if n <= 0 {
		return nil, nil
	}
	records := map[string]string{}
	value := make([]byte, 64<<10)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		n, err := unix.Fgetxattr(int(f.Fd()), name, value)
		if err != nil {
			return nil, &fs.PathError{Op: "getxattr " + name, Path: f.Name(), Err: err}
		}
		records["SCHILY.xattr."+name] = string(value[:n])
	}
	return records, nil
}
