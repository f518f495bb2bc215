package image

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sandbox/core/fault"
	"sandbox/core/filelock"
)

// maxBlob bounds a packed layer.
const maxBlob = 32 << 30

// partial is a blob on its way into a file, which outlives a failure of the
// connection and is gone on from where it ends.
type partial struct {
	f       *filelock.File
	d       v1.Descriptor
	sum     hash.Hash
	n       int64 // bytes in f
	fetched func(done int64)
}

// fetch returns the verified bytes of a blob. They are in a file without a name.
// Errors: Upstream, Image, Storage, and what ended ctx.
func (r *repository) fetch(ctx context.Context, d v1.Descriptor, fetched func(int64)) (io.ReadCloser, error) {
	if d.Size <= 0 || d.Size > maxBlob {
		return nil, fault.New(fault.Image, "layer %s of %d bytes, want 1 to %d", d.Digest, d.Size, int64(maxBlob))
	}
	if err := os.MkdirAll(r.blobs, 0o700); err != nil {
		return nil, fault.Disk(err, "make the directory of blobs")
	}
	f, err := filelock.Exclusive(ctx, filepath.Join(r.blobs, "partial-"+d.Digest.Hex))
	if err != nil {
		return nil, fault.Disk(err, "lock the image store")
	}
	p := &partial{f: f, d: d, fetched: fetched}
	err = r.complete(ctx, p)
	if err == nil || p.n == 0 || fault.Is(err, fault.Storage) { // else: to be gone on with
		_ = os.Remove(f.Name())
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, fault.Disk(err, "fetch a layer")
	}
	return f, nil
}

// complete gets what is missing. What an earlier process has left may be
// damaged, by a power cut say: then it is fetched once more.
func (r *repository) complete(ctx context.Context, p *partial) error {
	if err := p.resume(ctx); err != nil {
		return err
	}
	old := p.n > 0
	err := r.rest(ctx, p)
	if old && errors.Is(err, errWrong) {
		err = r.rest(ctx, p)
	}
	return err
}

// errWrong marks bytes that are not the blob.
var errWrong = errors.New("not what its digest and size say")

func (r *repository) wrong(p *partial, format string, args ...any) error {
	return fault.Wrap(fault.Upstream, errWrong, "registry %s sends wrong data: layer %s comes with %s", host(r.ref.Context()), p.d.Digest, fmt.Sprintf(format, args...))
}

// rest gets the rest of a blob and compares digests. Bytes that are wrong are
// not kept.
func (r *repository) rest(ctx context.Context, p *partial) error {
	err := r.persist(ctx, func() (bool, error) {
		before := p.n
		err := r.more(ctx, p)
		return p.n-before >= stride, err
	})
	if got := hex.EncodeToString(p.sum.Sum(nil)); err == nil && got != p.d.Digest.Hex {
		err = r.wrong(p, "the digest sha256:%s", got)
	}
	if errors.Is(err, errWrong) {
		if err := p.restart(); err != nil {
			return err
		}
	}
	return err
}

// more gets as much as one request gives.
func (r *repository) more(ctx context.Context, p *partial) error {
	if p.n == p.d.Size {
		return nil
	}
	header, want := http.Header{}, []int{http.StatusOK}
	if p.n > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", p.n, p.d.Size-1))
		want = append(want, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	}
	ctx = context.WithValue(ctx, blobRequest{}, p.d.Size+1) // the one byte shows that there are more
	resp, err := r.ask(ctx, "blobs/"+p.d.Digest.String(), header, want...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if got := resp.Header.Get("Content-Range"); !strings.HasPrefix(got, fmt.Sprintf("bytes %d-", p.n)) {
			return r.wrong(p, "the range %.100q, not from %d", got, p.n)
		}
	case http.StatusRequestedRangeNotSatisfiable: // the next request is for all
		return cmp.Or(p.restart(), io.ErrUnexpectedEOF)
	default:
		if err := p.restart(); err != nil { // it may know no ranges
			return err
		}
	}
	if resp.ContentLength >= 0 && resp.ContentLength != p.d.Size-p.n {
		return r.wrong(p, "%d bytes, not %d", p.n+resp.ContentLength, p.d.Size)
	}
	_, err = io.Copy(p, io.LimitReader(resp.Body, p.d.Size-p.n+1))
	switch {
	case p.n > p.d.Size:
		return r.wrong(p, "more than %d bytes", p.d.Size)
	case err == nil && p.n < p.d.Size:
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write keeps bytes of the blob.
func (p *partial) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	p.n += int64(n)
	p.sum.Write(b[:n])
	p.fetched(p.n)
	return n, fault.Disk(err, "fetch a layer")
}

// resume takes over what is in the file.
func (p *partial) resume(ctx context.Context) error {
	p.sum = sha256.New()
	var err error
	p.n, err = io.Copy(io.Discard, &meter{ctx: ctx, r: p.f, sum: p.sum, progress: func(int64) {}})
	if err == nil && p.n > p.d.Size {
		err = p.restart()
	}
	return fault.Disk(err, "read a half-fetched layer")
}

// restart throws away what is there.
func (p *partial) restart() error {
	p.n, p.sum = 0, sha256.New()
	err := p.f.Truncate(0)
	if err == nil {
		_, err = p.f.Seek(0, io.SeekStart)
	}
	return fault.Disk(err, "fetch a layer anew")
}
