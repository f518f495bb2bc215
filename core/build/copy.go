package build

import (
	"archive/tar"
	"bufio"
	"context"
	"io"
	"path"
	"strings"

	"sandbox/core"
	"sandbox/core/build/recipe"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
	"sandbox/core/options"
)

// target is where the files of a step go: to a directory of a box, the files of a
// directory as they are called there, and a single file under a name.
type target struct {
	dir  string
	name string // of a single file; "" for its own
}

// copy copies files into a box.
func (w *work) copy(ctx context.Context, b *core.Box, c *recipe.Copy) error {
	if c.From != (recipe.Source{Stage: -1}) {
		return w.copyFrom(ctx, b, c)
	}
	names, err := w.sources(c)
	if err != nil {
		return err
	}
	plain, packed, err := w.sort(c, names)
	if err != nil {
		return err
	}
	for _, f := range packed {
		if err := w.unpack(ctx, b, c, f); err != nil {
			return err
		}
	}
	if len(plain) == 0 {
		return nil
	}
	to, err := findTarget(ctx, b, c, len(plain) > 1 || plain[0].Kind == tree.Directory)
	if err != nil {
		return err
	}
	return put(ctx, b, c, to, func(tw *tar.Writer) error {
		for i, f := range plain {
			if err := w.pack(ctx, tw, c, f, to.of(path.Base(names[i]))); err != nil {
				return err
			}
		}
		return nil
	})
}

// of returns the name that a single file gets.
func (t target) of(name string) string {
	if t.name != "" {
		return t.name
	}
	return name
}

// findTarget returns where the files of a step go. several says that they need a
// directory. Where the destination is a directory of the box, or says that it is one, a
// file goes into it.
func findTarget(ctx context.Context, b *core.Box, c *recipe.Copy, several bool) (target, error) {
	if several || strings.HasSuffix(c.Dest, "/") {
		return target{dir: path.Clean(c.Dest)}, nil
	}
	_, err := b.ListFiles(ctx, options.ListFiles{Path: c.Dest, PageSize: 1})
	switch {
	case err == nil:
		return target{dir: c.Dest}, nil
	case fault.Is(err, fault.FileNotFound), fault.Is(err, fault.InvalidArgument): // nothing, or no directory
		return target{path.Dir(c.Dest), path.Base(c.Dest)}, nil
	}
	return target{}, err
}

// put writes the files of a tar, which write writes, into a box.
func put(ctx context.Context, b *core.Box, c *recipe.Copy, to target, write func(*tar.Writer) error) error {
	r, done := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		out := bufio.NewWriterSize(done, pieceSize)
		tw := tar.NewWriter(out)
		err := write(tw)
		if err == nil {
			err = tw.Close()
		}
		if err == nil {
			err = out.Flush()
		}
		_ = done.CloseWithError(err)
	}()
	err := upload(ctx, b, c, to.dir, r)
	_ = r.Close() // ends the goroutine if the box takes no more; it never fails
	<-written
	return err
}

// pieceSize is how many bytes of a tar are handed on at a time.
const pieceSize = 256 << 10

// upload unpacks a tar into a directory of a box.
func upload(ctx context.Context, b *core.Box, c *recipe.Copy, dir string, r io.Reader) error {
	_, err := b.Upload(ctx, core.Upload{Dest: dir, Tar: true, Owner: c.Owner, Owners: c.Owner == ""}, r)
	return err
}

// pack writes a file to a tar, or what is in a directory.
func (w *work) pack(ctx context.Context, tw *tar.Writer, c *recipe.Copy, f *tree.File, name string) error {
	return w.Context.Walk(f, func(one *tree.File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := name
		if f.Kind == tree.Directory {
			if one == f {
				return nil
			}
			to = one.Path
			if f.Path != "." {
				to = strings.TrimPrefix(one.Path, f.Path+"/")
			}
		}
		mode := one.Mode
		if c.Mode != nil {
			mode = *c.Mode
		}
		return w.Context.Put(tw, one, to, mode)
	})
}
