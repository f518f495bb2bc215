package build

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/build/recipe"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// lender returns the image that files are copied from.
func (w *work) lender(from recipe.Source) api.Image {
	if from.Stage >= 0 {
		return w.stages[from.Stage].image
	}
	return w.lent[from]
}

// open returns a box of the image that files are copied from. It lives as long as the
// build, since the next step may copy from it too.
func (w *work) open(ctx context.Context, from recipe.Source) (*core.Box, error) {
	if b := w.lenders[from]; b != nil {
		return b, nil
	}
	b, err := w.box(ctx, w.lender(from), false)
	if err == nil {
		w.lenders[from] = b
	}
	return b, err
}

// returnLenders removes the boxes that files were copied from. They end with this process
// in any case, so that a failure costs no more than room.
func (w *work) returnLenders(ctx context.Context) {
	for _, b := range w.lenders {
		_ = remove(ctx, b)
	}
}

// copyFrom copies files from another image into a box.
func (w *work) copyFrom(ctx context.Context, b *core.Box, c *recipe.Copy) error {
	from, err := w.open(ctx, c.From)
	if err != nil {
		return err
	}
	names, err := match(ctx, from, c.Sources)
	if err != nil {
		return err
	}
	first, err := from.Download(ctx, options.Download{Path: names[0], Tar: true})
	if err != nil {
		return err
	}
	source := &foreign{ctx: ctx, from: from, mode: c.Mode}
	defer func() { _ = source.close() }()
	if err := source.begin(first); err != nil {
		return err
	}
	to, err := findTarget(ctx, b, c, len(names) > 1 || source.head.Typeflag == tar.TypeDir)
	if err != nil {
		return err
	}
	return put(ctx, b, c, to, func(tw *tar.Writer) error {
		for i, name := range names {
			if i > 0 {
				if err := source.next(name); err != nil {
					return err
				}
			}
			if err := source.copy(tw, to.of(path.Base(name))); err != nil {
				return err
			}
		}
		return nil
	})
}

// match returns the paths of a box that match patterns, each once.
func match(ctx context.Context, b *core.Box, patterns []string) ([]string, error) {
	var all []string
	for _, pattern := range patterns {
		if !strings.ContainsAny(pattern, `*?[\`) {
			all = append(all, pattern)
			continue
		}
		found, err := tree.Glob(pattern, func(dir string) ([]string, error) { return list(ctx, b, path.Join("/", dir)) },
			func(name string) error {
				_, err := b.StatFile(ctx, options.StatFile{Path: path.Join("/", name)})
				return err
			})
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			all = append(all, path.Join("/", name))
		}
	}
	return all, nil
}

// mounted tells whether a file is in a directory that every box has for itself, whatever
// its image has there. Its name has no / before it.
func mounted(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains([]string{"dev", "proc", "sys"}, first)
}

// maxListed bounds the names in a directory that a pattern is tried with.
const maxListed = 100_000

// list returns the names in a directory of a box, without those that the box has mounted.
func list(ctx context.Context, b *core.Box, dir string) ([]string, error) {
	var names []string
	for o := (options.ListFiles{Path: dir}); ; {
		page, err := b.ListFiles(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, f := range page.Files {
			names = append(names, f.Name)
		}
		if page.NextPageToken == nil {
			if dir == "/" {
				names = slices.DeleteFunc(names, mounted)
			}
			return names, nil
		}
		if len(names) > maxListed {
			return nil, fault.New(fault.TooLarge, "%.200s has more than %d files: name those to be copied", dir, maxListed)
		}
		o.PageToken = *page.NextPageToken
	}
}

// foreign is the tar of a file or directory of another box.
type foreign struct {
	ctx  context.Context //nolint:containedctx // of one copy
	from *core.Box
	mode *int
	body io.ReadCloser
	tr   *tar.Reader
	head *tar.Header // the first entry: the file or directory itself
}

// begin reads the first entry of a download.
func (f *foreign) begin(d *core.Download) (err error) {
	f.body, f.tr = d, tar.NewReader(d)
	f.head, err = f.tr.Next()
	return broken(err)
}

// next goes on with another file.
func (f *foreign) next(name string) error {
	if err := f.close(); err != nil {
		return err
	}
	d, err := f.from.Download(f.ctx, options.Download{Path: name, Tar: true})
	if err != nil {
		return err
	}
	return f.begin(d)
}

func (f *foreign) close() error {
	if f.body == nil {
		return nil
	}
	err := f.body.Close()
	f.body = nil
	return err
}

// copy writes a file to a tar under a name, or what is in a directory.
func (f *foreign) copy(tw *tar.Writer, name string) error {
	root := path.Clean(f.head.Name)
	isDir := f.head.Typeflag == tar.TypeDir
	for h := f.head; ; {
		to := name
		if isDir {
			to = strings.TrimPrefix(path.Clean(h.Name), root+"/")
			if root == "." {
				to = path.Clean(h.Name)
			}
		}
		if (!isDir || path.Clean(h.Name) != root) && (root != "." || !mounted(to)) {
			if err := f.entry(tw, h, to); err != nil {
				return err
			}
		}
		var err error
		if h, err = f.tr.Next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return broken(err)
		}
	}
}

// entry writes one entry. Its owner stays who it is.
func (f *foreign) entry(tw *tar.Writer, h *tar.Header, name string) error {
	made := *h
	made.Name = name
	if h.Typeflag == tar.TypeDir {
		made.Name += "/"
	}
	if f.mode != nil {
		made.Mode = int64(*f.mode)
	}
	if err := tw.WriteHeader(&made); err != nil {
		return err
	}
	_, err := io.Copy(tw, f.tr)
	return broken(err)
}

// broken classifies what a hostile init may have sent for a tar.
func broken(err error) error {
	if err == nil || fault.Classified(err) {
		return err
	}
	return fault.Wrap(fault.Engine, err, "read files of a box")
}
