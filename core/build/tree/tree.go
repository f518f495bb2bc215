// Package tree holds the files that a build may copy: those of a directory or of a
// tar, without those that .dockerignore leaves out. A [Tree] is an index; contents
// are read when they are copied. No link leads out of it: links are followed in the
// index, where nothing else is.
package tree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"sandbox/core/fault"
)

const (
	// MaxFiles is how many files and directories a tree may have.
	MaxFiles = 1 << 20
	// maxLinks bounds how many links are followed on the way to one file.
	maxLinks = 40
)

// Kind is what a file is.
type Kind byte

// The kinds of files that a tree has. It leaves out others.
const (
	Regular Kind = iota
	Directory
	Link
)

// File is a file, a directory or a link of a tree.
type File struct {
	Path     string // relative to the tree; "." is the tree itself
	Kind     Kind
	Mode     int // permission bits, up to 07777
	Size     int64
	Modified time.Time
	Target   string // of a link

	at int64 // where its content is in the tar
}

// Tree is an index of files. It is safe for concurrent use. Its owner closes it.
type Tree struct {
	files   map[string]*File
	names   map[string][]string // of each directory, sorted
	content contents
}

// contents opens the files of a tree.
type contents interface {
	open(f *File) (io.ReadCloser, error)
	Close() error
}

// Empty returns a tree without files.
func Empty() *Tree { return newBuilder(nil).tree(nothing{}) }

// nothing has no contents.
type nothing struct{}

func (nothing) open(f *File) (io.ReadCloser, error) {
	return nil, fault.New(fault.FileNotFound, "the context has no %.200q", f.Path)
}

func (nothing) Close() error { return nil }

// Close gives up what the tree holds.
func (t *Tree) Close() error { return t.content.Close() }

// builder makes the index of a tree.
type builder struct {
	files  map[string]*File
	ignore *ignore
}

func newBuilder(ignored *ignore) *builder {
	return &builder{files: map[string]*File{".": {Path: ".", Kind: Directory, Mode: 0o755}}, ignore: ignored}
}

// add adds a file. One of the same path that was there is replaced.
func (b *builder) add(f *File) error {
	if len(b.files) > MaxFiles {
		return fault.New(fault.TooLarge, "the context has more than %d files: leave some out with .dockerignore", MaxFiles)
	}
	for dir := path.Dir(f.Path); b.files[dir] == nil; dir = path.Dir(dir) {
		b.files[dir] = &File{Path: dir, Kind: Directory, Mode: 0o755, Modified: f.Modified}
	}
	b.files[f.Path] = f
	return nil
}

// tree returns the tree of what was added. Files below what is no directory are left out.
func (b *builder) tree(from contents) *Tree {
	t := &Tree{files: b.files, names: map[string][]string{}, content: from}
	for name, f := range b.files {
		if name == "." {
			continue
		}
		dir := path.Dir(f.Path)
		if b.files[dir].Kind == Directory {
			t.names[dir] = append(t.names[dir], path.Base(name))
		}
	}
	for _, names := range t.names {
		slices.Sort(names)
	}
	return t
}

// Find returns the file that a path leads to, and follows links. Like a root directory,
// the tree is what absolute links begin at and what ".." does not leave. Errors:
// FileNotFound, InvalidArgument (too many links).
func (t *Tree) Find(name string) (*File, error) {
	links := 0
	at := t.files["."]
	rest := split(name)
	for len(rest) > 0 {
		first := rest[0]
		rest = rest[1:]
		if first == ".." {
			at = t.files[path.Dir(at.Path)]
			continue
		}
		next := t.files[path.Join(at.Path, first)]
		switch {
		case next == nil || at.Kind != Directory:
			return nil, fault.New(fault.FileNotFound, "the context has no %.200q", name)
		case next.Kind != Link:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil, fault.New(fault.InvalidArgument, "too many links on the way to %.200q of the context", name)
		}
		rest = append(split(next.Target), rest...)
		if path.IsAbs(next.Target) {
			at = t.files["."]
		}
	}
	return at, nil
}

// split returns the names of a path, without empty ones and ".".
func split(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(part string) bool { return part == "" || part == "." })
}

// Match returns the paths that match a pattern as [path.Match] reads it, sorted. A
// pattern without wildcards matches itself. Errors: FileNotFound (nothing matches),
// InvalidArgument (the pattern).
func (t *Tree) Match(pattern string) ([]string, error) {
	pattern = strings.TrimPrefix(path.Clean("/"+pattern), "/")
	return Glob(pattern, func(dir string) ([]string, error) {
		f, err := t.Find(dir)
		if err != nil {
			return nil, err
		}
		return t.names[f.Path], nil
	}, func(name string) error {
		_, err := t.Find(name)
		return err
	})
}

// Glob returns the paths that match a pattern, part by part; list returns the names in
// a directory, and find fails where nothing has a path. Errors: as [Tree.Match], and
// those of list and find.
func Glob(pattern string, list func(dir string) ([]string, error), find func(name string) error) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fault.New(fault.InvalidArgument, "%.200q is not a pattern: %v", pattern, err)
	}
	found := []string{""}
	for _, part := range split(pattern) {
		var next []string
		for _, dir := range found {
			names := []string{part}
			if strings.ContainsAny(part, `*?[\`) {
				var err error
				if names, err = list(dir); absent(err) {
					continue
				} else if err != nil {
					return nil, err
				}
			}
			for _, name := range names {
				if ok, _ := path.Match(part, name); ok || name == part {
					next = append(next, path.Join(dir, name))
				}
			}
		}
		found = next
	}
	found = slices.DeleteFunc(found, func(name string) bool { return absent(find(name)) })
	if len(found) == 0 {
		return nil, fault.New(fault.FileNotFound, "nothing matches %.200q", pattern)
	}
	return found, nil
}

// absent tells whether a failure means that nothing has a path, or no directory.
func absent(err error) bool {
	return fault.Is(err, fault.FileNotFound) || fault.Is(err, fault.InvalidArgument)
}

// Walk calls do for a file and, if it is a directory, for all below it, in the order of
// their paths. It follows no link.
func (t *Tree) Walk(f *File, do func(*File) error) error {
	if err := do(f); err != nil || f.Kind != Directory {
		return err
	}
	for _, name := range t.names[f.Path] {
		if err := t.Walk(t.files[path.Join(f.Path, name)], do); err != nil {
			return err
		}
	}
	return nil
}

// Open opens a regular file. Errors: FileNotFound (it is gone), InvalidArgument (it is
// something else now), Storage.
func (t *Tree) Open(f *File) (io.ReadCloser, error) { return t.content.open(f) }

// Digest returns the digest of a file, or of a directory with all that is in it:
// of names, kinds, modes and contents, and not of times and owners, which a copy does
// not take from the context. Errors: those of Open, and what ended ctx.
func (t *Tree) Digest(ctx context.Context, f *File) (string, error) {
	sum := sha256.New()
	note := func(parts ...string) {
		for _, part := range parts {
			_ = binary.Write(sum, binary.BigEndian, int64(len(part))) // a hash takes all
			_, _ = io.WriteString(sum, part)
		}
	}
	err := t.Walk(f, func(one *File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		note(strings.TrimPrefix(one.Path, f.Path), string('0'+rune(one.Kind)), one.Target)
		_ = binary.Write(sum, binary.BigEndian, [2]int64{int64(one.Mode), one.Size})
		if one.Kind != Regular {
			return nil
		}
		return t.copy(sum, one)
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// copy copies the content of a regular file, all of it or with a failure.
func (t *Tree) copy(w io.Writer, f *File) error {
	r, err := t.Open(f)
	if err != nil {
		return err
	}
	n, err := io.CopyN(w, r, f.Size)
	closing := r.Close()
	if errors.Is(err, io.EOF) {
		err = fault.New(fault.InvalidArgument, "%.200q of the context became shorter while it was read: %d bytes are left of %d", f.Path, n, f.Size)
	}
	return cmp.Or(err, closing)
}
