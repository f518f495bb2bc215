package image

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/readahead"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sandbox/core/fault"
	"sandbox/core/image/gunzip"
)

const (
	// maxStream bounds the plain tar of a layer, in bytes.
	maxStream = 65 << 30
	// A compressed file may unpack to freeStream bytes however small it is,
	// and beyond that to maxRatio times its size. Systems typically
	// compress to a third.
	freeStream = 1 << 30
	maxRatio   = 200
	// maxWindow bounds the memory that a zstd frame may ask for. It is what
	// `zstd --long` uses by default.
	maxWindow = 128 << 20
	readAhead = 256 << 10
)

// A stream is unpacked up to piecesAhead pieces of pieceSize bytes ahead of its
// reader, so that unpacking and reading can use different cores.
const (
	piecesAhead = 4
	pieceSize   = 256 << 10
)

// stream reads the plain tar from a source. On the way it measures both: the
// progress, the digests, and whether the source is a decompression bomb.
type stream struct {
	raw   *meter
	plain io.Reader
	done  func() // frees the decompressor
	sum   hash.Hash
	size  int64
	err   error
	// packed says whether the source is compressed.
	packed bool
	// room is that for what is unpacked.
	room room
}

// meter measures what is read from a source.
type meter struct {
	ctx      context.Context
	r        io.Reader
	sum      hash.Hash // nil if the digest is not needed
	n        atomic.Int64
	progress func(int64)
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, fault.Of(err)
	}
	n, err := m.r.Read(p)
	if m.sum != nil {
		m.sum.Write(p[:n])
	}
	m.progress(m.n.Add(int64(n)))
	return n, err
}

// newStream begins to read source. If digest is zero, the digest of the source
// itself is not computed.
func newStream(ctx context.Context, source io.Reader, digest v1.Hash, progress func(int64)) (*stream, error) {
	s := &stream{raw: &meter{ctx: ctx, r: source, progress: progress}, sum: sha256.New()}
	if digest.Hex != "" {
		s.raw.sum = sha256.New()
	}
	var err error
	s.plain, s.done, err = decompress(s.raw)
	_, plain := s.plain.(*bufio.Reader)
	s.packed = !plain
	return s, err
}

// hasten starts a goroutine that reads and unpacks the source ahead, until the
// source ends or the stream is closed.
func (s *stream) hasten() error {
	ahead, err := readahead.NewReaderSize(s.plain, piecesAhead, pieceSize)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "read ahead")
	}
	done := s.done
	s.plain, s.done = ahead, func() { _ = ahead.Close(); done() }
	return nil
}

// close frees what the stream holds. It does not close the source.
func (s *stream) close() { s.done() }

// Read returns bytes of the plain tar.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.plain.Read(p)
	s.size += int64(n)
	s.sum.Write(p[:n])
	full := s.room.take(n)
	switch {
	case full != nil:
		err = full
	case s.size > maxStream, s.size > freeStream && s.size/maxRatio > s.raw.n.Load():
		err = fault.New(fault.Image, "the tar holds too much: %d bytes from %d packed ones", s.size, s.raw.n.Load())
	case err != nil && !errors.Is(err, io.EOF):
		err = damaged(err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// cause returns why unpacking failed. If reading the source failed, that is the
// cause, and the broken tar is only its consequence.
func (s *stream) cause(err error) error {
	if s.err != nil {
		return s.err
	}
	return err
}

// verify reads what is left of the plain tar, compares both digests with those
// that b promises, and returns the plain one.
func (s *stream) verify(b blob) (v1.Hash, error) {
	if _, err := io.Copy(io.Discard, s); err != nil { // the unpacker has read all of it already
		return v1.Hash{}, s.cause(err)
	}
	if _, err := io.Copy(io.Discard, s.raw); err != nil {
		return v1.Hash{}, damaged(err)
	}
	diffID := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(s.sum.Sum(nil))}
	if s.raw.sum != nil {
		if packed := hex.EncodeToString(s.raw.sum.Sum(nil)); b.digest.Hex != packed {
			return v1.Hash{}, fault.New(fault.Image, "layer %s has the digest sha256:%s", b.digest, packed)
		}
	}
	if b.diffID.Hex != "" && b.diffID != diffID {
		return v1.Hash{}, fault.New(fault.Image, "unpacked layer %s has the digest %s", b.diffID, diffID)
	}
	return diffID, nil
}

func damaged(err error) error {
	if fault.Classified(err) {
		return err
	}
	return fault.Wrap(fault.Image, err, "damaged image")
}

// formats lists the compressions, with the first bytes of what they produce.
var formats = []struct {
	magic string
	open  func(io.Reader) (io.Reader, func(), error)
}{
	{"\x1f\x8b", openGzip},
	{"\x28\xb5\x2f\xfd", openZstd},
	{"\xfd7zXZ\x00", unknown("xz")},
	{"BZh", unknown("bzip2")},
}

// decompress returns a reader of the plain bytes in r. It detects the
// compression by the first bytes, because file names are not reliable.
func decompress(r io.Reader) (io.Reader, func(), error) {
	in := bufio.NewReaderSize(r, readAhead)
	start, err := in.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, damaged(err)
	}
	for _, f := range formats {
		if bytes.HasPrefix(start, []byte(f.magic)) {
			return f.open(in)
		}
	}
	return in, func() {}, nil
}

func openGzip(r io.Reader) (io.Reader, func(), error) {
	z, err := gunzip.NewReader(r)
	if err != nil {
		return nil, nil, damaged(err)
	}
	return z, func() {}, nil
}

func openZstd(r io.Reader) (io.Reader, func(), error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(2))
	if err != nil {
		return nil, nil, damaged(err)
	}
	return z, z.Close, nil
}

func unknown(format string) func(io.Reader) (io.Reader, func(), error) {
	return func(io.Reader) (io.Reader, func(), error) {
		return nil, nil, fault.New(fault.Image, "packed with %s: pack it with gzip or zstd, or not at all", format)
	}
}
