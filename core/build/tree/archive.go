package tree

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"sandbox/core/fault"
)

// RecipeEntry is the name under which the tar of a context may hold the recipe. The
// tree does not have it.
const RecipeEntry = ".sandbox-recipe"

// maxPath is the most bytes that a path in a tar may have.
const maxPath = 4095

// Read returns the tree of a plain tar, and what a file of it holds, the recipe, which
// .dockerignore may leave out: the one with the name recipe, for "" the [RecipeEntry].
// Nothing is unpacked. The tree owns f if Read does not fail. Errors: FileNotFound (the
// recipe), InvalidArgument (what the tar holds, .dockerignore), TooLarge, and what ended
// ctx.
func Read(ctx context.Context, f *os.File, recipe string, most int64) (*Tree, []byte, error) {
	none, err := newIgnore(nil)
	if err != nil {
		return nil, nil, err
	}
	all := newBuilder(none)
	if err := all.archive(ctx, f); err != nil {
		return nil, nil, err
	}
	whole := all.tree(archive{f})
	text, err := whole.text(cmp.Or(recipe, RecipeEntry), most)
	if err != nil {
		return nil, nil, err
	}
	patterns, err := whole.text(IgnoreFile, maxIgnore)
	if err != nil && !fault.Is(err, fault.FileNotFound) {
		return nil, nil, err
	}
	ignored, err := newIgnore(patterns)
	if err != nil {
		return nil, nil, err
	}
	t, err := whole.without(ignored)
	return t, text, err
}

// text returns what is in a regular file of the tree, of at most a number of bytes.
// Errors: as Find and Open, TooLarge.
func (t *Tree) text(name string, most int64) ([]byte, error) {
	f, err := t.Find(name)
	if err != nil {
		return nil, err
	}
	if f.Kind != Regular {
		return nil, fault.New(fault.InvalidArgument, "%.200q of the context is not a file", name)
	}
	if f.Size > most {
		return nil, fault.New(fault.TooLarge, "%.200q of the context has %d bytes and may have at most %d", name, f.Size, most)
	}
	r, err := t.Open(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, most))
}

// without returns the tree without what is to be left out.
func (t *Tree) without(ignored *ignore) (*Tree, error) {
	b := newBuilder(ignored)
	err := t.Walk(t.files["."], func(f *File) error {
		if f.Path == "." || f.Path == RecipeEntry {
			return nil
		}
		if left, _ := ignored.leaves(f.Path, f.Kind == Directory); left {
			return nil
		}
		return b.add(f)
	})
	return b.tree(t.content), err
}

// archive adds the files of a tar.
func (b *builder) archive(ctx context.Context, f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fault.Disk(err, "read the context")
	}
	tr := tar.NewReader(f) // does not read ahead, and seeks over contents
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return ctx.Err()
		}
		if err == nil || errors.Is(err, tar.ErrInsecurePath) {
			err = ctx.Err()
		} else {
			err = fault.New(fault.InvalidArgument, "the context is no tar, or a damaged one: %v", err)
		}
		if err != nil {
			return err
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return fault.Disk(err, "read the context")
		}
		if err := b.header(h, at); err != nil {
			return err
		}
	}
}

// header adds the file of one header, whose content is at a place of the tar. A name
// that would lead out of the tree is taken as one in it.
func (b *builder) header(h *tar.Header, at int64) error {
	name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	if len(name) > maxPath || len(h.Linkname) > maxPath {
		return fault.New(fault.InvalidArgument, "the tar of the context has a path of more than %d bytes, %.100q...", maxPath, name)
	}
	f := &File{Path: name, Mode: int(h.Mode & 0o7777), Modified: h.ModTime, at: at}
	switch h.Typeflag {
	case tar.TypeReg:
		f.Size = h.Size
	case tar.TypeDir:
		f.Kind = Directory
	case tar.TypeSymlink:
		f.Kind, f.Target = Link, h.Linkname
	case tar.TypeLink:
		first := b.files[strings.TrimPrefix(path.Clean("/"+h.Linkname), "/")]
		if first == nil || first.Kind == Directory {
			return fault.New(fault.InvalidArgument, "the tar of the context has the link %.200q to a file that does not come before it", h.Name)
		}
		same := *first
		same.Path = name
		f = &same
	case tar.TypeGNUSparse:
		return fault.New(fault.InvalidArgument, "the tar of the context has the sparse file %.200q, which can't be read", h.Name)
	default:
		return nil
	}
	if sparse(h) {
		return fault.New(fault.InvalidArgument, "the tar of the context has the sparse file %.200q, which can't be read", h.Name)
	}
	if old := b.files[name]; name == "" || old != nil && old.Kind == Directory && f.Kind != Directory {
		return nil // the tree itself, or what has files below it already
	}
	return b.add(f)
}

// sparse reports whether the content of a file is not as it is in the tar.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// archive has the contents of the files of a tar.
type archive struct{ f *os.File }

func (a archive) open(f *File) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(a.f, f.at, f.Size)), nil
}

// Close closes the tar.
func (a archive) Close() error { return a.f.Close() }

// Pack writes the tree to w as a tar, with a recipe as its first entry, for [Read].
// Errors: those of Open and w, and what ended ctx.
func (t *Tree) Pack(ctx context.Context, recipe []byte, w io.Writer) error {
	tw := tar.NewWriter(w)
	h := &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: RecipeEntry, Mode: 0o600, Size: int64(len(recipe)), ModTime: time.Unix(0, 0)}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if _, err := tw.Write(recipe); err != nil {
		return err
	}
	err := t.Walk(t.files["."], func(f *File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.Path == "." {
			return nil
		}
		return t.Put(tw, f, f.Path, f.Mode)
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

// Put writes one file to a tar, under a name and with a mode. Its owner is root.
// Errors: those of Open and tw.
func (t *Tree) Put(tw *tar.Writer, f *File, name string, mode int) error {
	h := &tar.Header{Format: tar.FormatPAX, Name: name, Mode: int64(mode), ModTime: f.Modified}
	switch f.Kind {
	case Directory:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case Link:
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Target
	default:
		h.Typeflag, h.Size = tar.TypeReg, f.Size
	}
	if err := tw.WriteHeader(h); err != nil || f.Kind != Regular {
		return err
	}
	return t.copy(tw, f)
}
