package build

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"io"
	"path"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sandbox/core"
	"sandbox/core/build/recipe"
	"sandbox/core/build/tree"
	"sandbox/core/fault"
)

// sort tells the files that are copied from those that are unpacked.
func (w *work) sort(c *recipe.Copy, names []string) (plain, packed []*tree.File, err error) {
	for _, name := range names {
		f, err := w.Context.Find(name)
		if err != nil {
			return nil, nil, err
		}
		is := false
		if c.Unpack && f.Kind == tree.Regular {
			if is, err = w.isTar(f); err != nil {
				return nil, nil, err
			}
		}
		if is {
			packed = append(packed, f)
		} else {
			plain = append(plain, f)
		}
	}
	return plain, packed, nil
}

// isTar reports whether a file is a tar, compressed or not.
func (w *work) isTar(f *tree.File) (bool, error) {
	r, err := w.openPacked(f)
	if err != nil {
		return false, err
	}
	defer r.Close()
	_, err = tar.NewReader(r).Next()
	return err == nil, nil // an empty file is no tar, and neither is one that can't be unpacked
}

// unpack unpacks a tar into a box.
func (w *work) unpack(ctx context.Context, b *core.Box, c *recipe.Copy, f *tree.File) error {
	r, err := w.openPacked(f)
	if err != nil {
		return err
	}
	defer r.Close()
	return upload(ctx, b, c, path.Clean(c.Dest), r)
}

// The first bytes of compressed files.
var (
	gzipMagic  = []byte{0x1f, 0x8b}
	bzip2Magic = []byte("BZh")
	zstdMagic  = []byte{0x28, 0xb5, 0x2f, 0xfd}
	xzMagic    = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
)

// packed is a file that is decompressed as it is read.
type packed struct {
	io.Reader
	close func()
}

// Close closes the file.
func (p packed) Close() error {
	p.close()
	return nil
}

// openPacked opens a file, and decompresses it if it is compressed. What was appended to
// it since the context was looked through is no part of it, nor of its digest. Errors:
// InvalidArgument (a compression that is not in the subset), those of opening it.
func (w *work) openPacked(f *tree.File) (io.ReadCloser, error) {
	file, err := w.Context.Open(f)
	if err != nil {
		return nil, err
	}
	closeFile := func() { _ = file.Close() }
	in := bufio.NewReaderSize(io.LimitReader(file, f.Size), pieceSize)
	first, _ := in.Peek(len(xzMagic)) // a shorter file is not compressed
	switch {
	case bytes.HasPrefix(first, gzipMagic):
		if z, err := gzip.NewReader(in); err == nil {
			return packed{z, closeFile}, nil
		}
	case bytes.HasPrefix(first, zstdMagic):
		if z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow)); err == nil {
			return packed{z, func() { z.Close(); closeFile() }}, nil
		}
	case bytes.HasPrefix(first, bzip2Magic):
		return packed{bzip2.NewReader(in), closeFile}, nil
	case bytes.Equal(first, xzMagic):
		closeFile()
		return nil, fault.New(fault.InvalidArgument, "%.200q is compressed with xz, which is not in the subset: use gzip or zstd, or COPY and unpack it with RUN", f.Path)
	}
	return packed{in, closeFile}, nil
}

// maxWindow bounds the memory that decompressing takes, in bytes.
const maxWindow = 128 << 20
