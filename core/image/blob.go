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

// maxBlob bounds the size of a compressed layer, in bytes.
const maxBlob = 32 << 30

// partial is a blob that is being downloaded into a file. The file outlives a
// failed connection, so that the next download resumes where the last one
// stopped.
type partial struct {
	f       *filelock.File
	d       v1.Descriptor
	sum     hash.Hash
	n       int64 // bytes in f
	fetched func(done int64)
	room    room
}

// fetch returns the verified bytes of a blob, in a file that no longer has a
// name. Errors: Upstream, Image, Storage, and what ended ctx.
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
	p := &partial{f: f, d: d, fetched: fetched, room: room{check: r.room}}
	err = r.complete(ctx, p)
	st, statErr := f.Stat()
	empty := statErr == nil && st.Size() == 0
	if err == nil || empty || fault.Is(err, fault.Storage) { // otherwise the file stays, for a later download to resume
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

// complete downloads what is missing of a blob. What an earlier process left
// may be damaged, for example by a power cut: the blob is then downloaded once
// more from the start.
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
var errWrong = errors.New("it does not match its digest and size")

func (r *repository) wrong(p *partial, format string, args ...any) error {
	return fault.Wrap(fault.Upstream, errWrong, "registry %s sends wrong data: layer %s comes with %s", host(r.ref.Context()), p.d.Digest, fmt.Sprintf(format, args...))
}

// rest downloads the rest of a blob and compares its digest. Wrong bytes are
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

// more sends one request and keeps as much as its answer brings.
func (r *repository) more(ctx context.Context, p *partial) error {
	if p.n == p.d.Size {
		return nil
	}
	header, want := http.Header{}, []int{http.StatusOK}
	if p.n > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", p.n, p.d.Size-1))
		want = append(want, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	}
	ctx = context.WithValue(ctx, blobRequest{}, p.d.Size+1) // one byte more than the blob has shows that the registry sends too much
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
	case http.StatusRequestedRangeNotSatisfiable: // the next request asks for the whole blob
		return cmp.Or(p.restart(), io.ErrUnexpectedEOF)
	default:
		if err := p.restart(); err != nil { // the registry may not support ranges
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

// Write appends bytes of the blob to the file.
func (p *partial) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	p.n += int64(n)
	p.sum.Write(b[:n])
	p.fetched(p.n)
	if err == nil {
		err = p.room.take(n)
	}
	return n, fault.Disk(err, "fetch a layer")
}

// resume reads what an earlier download left in the file, and continues its
// digest and size from there.
func (p *partial) resume(ctx context.Context) error {
	p.sum = sha256.New()
	var err error
	p.n, err = io.Copy(io.Discard, &meter{ctx: ctx, r: p.f, sum: p.sum, progress: func(int64) {}})
	if err == nil && p.n > p.d.Size {
		err = p.restart()
	}
	return fault.Disk(err, "read a layer that was fetched in part")
}

// restart discards all bytes that were downloaded.
func (p *partial) restart() error {
	p.n, p.sum = 0, sha256.New()
	err := p.f.Truncate(0)
	if err == nil {
		_, err = p.f.Seek(0, io.SeekStart)
	}
	return fault.Disk(err, "fetch a layer again")
}
