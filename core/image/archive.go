package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sandbox/core/fault"
)

// maxFiles bounds the files in the tar of an image.
const maxFiles = 10_000

var errNoArchive = errors.New("not an archive of an image")

// files are the files that an image consists of.
type files interface {
	// open opens a file and returns its size as well. Errors: Image (there
	// is no file of that name).
	open(name string) (io.ReadCloser, int64, error)
}

// dirFiles are the files of an image in a directory. Nothing outside of the
// directory can be reached.
type dirFiles struct{ root *os.Root }

func (f dirFiles) open(name string) (io.ReadCloser, int64, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // without O_NONBLOCK, opening a FIFO would block
	if err != nil {
		return nil, 0, fault.Wrap(fault.Image, err, "the image lacks a part")
	}
	st, err := file.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, fault.Wrap(fault.Image, err, "part %s of the image", name)
	}
	return file, st.Size(), nil
}

// tarFiles are the files of an image in a tar. parts says where in the tar the
// contents of each file lie.
type tarFiles struct {
	f     *os.File
	parts map[string]extent
}

type extent struct {
	at, size int64
	link     string // the name of another part; docker save stores a part once and links to it
}

func (t tarFiles) open(name string) (io.ReadCloser, int64, error) {
	p, ok := t.parts[path.Clean(name)]
	if ok && p.link != "" {
		p, ok = t.parts[p.link]
	}
	if !ok || p.link != "" {
		return nil, 0, fault.New(fault.Image, "the image lacks its part %.200q", name)
	}
	return io.NopCloser(io.NewSectionReader(t.f, p.at, p.size)), p.size, nil
}

// openArchive reads the plain tar of an image. Errors: errNoArchive (it is not
// the tar of an image), Image, Ambiguous.
func openArchive(ctx context.Context, f *os.File) (content, error) {
	t, err := indexTar(f)
	if err != nil {
		return content{}, err
	}
	if _, ok := t.parts[layoutFile]; ok { // checked first: it has the digests of all its parts, and docker adds its own document to it
		return readLayout(ctx, t)
	}
	if _, ok := t.parts[manifestFile]; ok {
		return readDocker(t)
	}
	return content{}, errNoArchive
}

// indexTar lists the files in a tar without reading their contents.
func indexTar(f *os.File) (tarFiles, error) {
	t := tarFiles{f, map[string]extent{}}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return t, fault.Disk(err, "read the image source")
	}
	tr := tar.NewReader(f) // does not read ahead, and seeks over contents
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return t, fault.Wrap(fault.Image, err, "damaged tar")
		}
		if len(t.parts) == maxFiles {
			return t, errNoArchive
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return t, fault.Disk(err, "read the image source")
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			t.parts[name] = extent{at: at, size: h.Size}
		case tar.TypeSymlink, tar.TypeLink:
			t.parts[name] = extent{link: linked(h, name)}
		}
	}
}

// linked returns the name of the file that a link in a tar points to.
func linked(h *tar.Header, name string) string {
	if h.Typeflag == tar.TypeLink {
		return path.Clean(h.Linkname)
	}
	return path.Join(path.Dir(name), h.Linkname)
}
