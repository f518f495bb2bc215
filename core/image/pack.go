package image

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sandbox/api"
	"sandbox/core/fault"
)

// packedLayer describes a layer as it leaves the store.
type packedLayer struct {
	DiffID v1.Hash `json:"diff_id"` // of the plain tar
	Plain  int64   `json:"plain"`   // bytes of the plain tar
	Digest v1.Hash `json:"digest"`  // of the compressed tar
	Size   int64   `json:"size"`    // bytes of the compressed tar
}

// descriptor returns what a manifest says of the layer.
func (p packedLayer) descriptor(how api.Compression) v1.Descriptor {
	return v1.Descriptor{MediaType: packings[how].mediaType, Digest: p.Digest, Size: p.Size}
}

// packing is one way to compress a layer. The same tar always gives the same
// bytes.
type packing struct {
	mediaType types.MediaType
	open      func(io.Writer) (io.WriteCloser, error)
}

var packings = map[api.Compression]packing{
	api.CompressZstd: {types.OCILayerZStd, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w, zstd.WithEncoderConcurrency(2)) }},
	api.CompressGzip: {types.OCILayer, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }},
	api.CompressNone: {types.OCIUncompressedLayer, func(w io.Writer) (io.WriteCloser, error) { return unpacked{w}, nil }},
}

// unpacked is the compressor that leaves bytes as they are.
type unpacked struct{ io.Writer }

func (unpacked) Close() error { return nil }

// CheckCompression returns how layers are compressed of which a caller says how,
// or nothing. Errors: InvalidArgument.
func CheckCompression(how api.Compression) (api.Compression, error) {
	if how == "" {
		return api.CompressZstd, nil
	}
	if _, ok := packings[how]; !ok {
		return "", fault.New(fault.InvalidArgument, "compression %.100q: want %s, %s or %s", string(how), api.CompressZstd, api.CompressGzip, api.CompressNone)
	}
	return how, nil
}

// measured counts what is written through it, and computes its digest.
type measured struct {
	w       io.Writer
	sum     hash.Hash
	n       int64
	written func(int64) // nil: nobody wants to know
}

func (m *measured) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.sum.Write(p[:n])
	m.n += int64(n)
	if m.written != nil {
		m.written(m.n)
	}
	return n, err
}

func (m *measured) digest() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(m.sum.Sum(nil))}
}

// pack packs a layer into a file without a name, which the caller closes. packed
// is told how many bytes of the plain tar there are so far. The layer's record
// remembers what it was. Errors: those of [layer.Pack].
func (s *Store) pack(ctx context.Context, name string, how api.Compression, packed func(int64)) (*os.File, packedLayer, error) {
	f, err := s.unnamed()
	if err != nil {
		return nil, packedLayer{}, err
	}
	p, err := s.packInto(ctx, f, s.layer(name), how, packed)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, p, fault.Disk(err, "pack a layer")
	}
	s.remember(ctx, name, how, p)
	return f, p, nil
}

// packInto packs the layer in a directory into f.
func (s *Store) packInto(ctx context.Context, f io.Writer, dir string, how api.Compression, packed func(int64)) (p packedLayer, err error) {
	buffer := bufio.NewWriterSize(f, pieceSize)
	outer := &measured{w: buffer, sum: sha256.New()}
	z, err := packings[how].open(outer)
	if err != nil {
		return p, fault.Wrap(fault.Internal, err, "compress a layer")
	}
	inner := &measured{w: z, sum: sha256.New(), written: packed}
	err = s.c.Unpacker.Pack(ctx, dir, inner)
	if closeErr := z.Close(); err == nil { // ends the compressor's goroutines in any case
		err = closeErr
	}
	if err == nil {
		err = buffer.Flush()
	}
	return packedLayer{DiffID: inner.digest(), Plain: inner.n, Digest: outer.digest(), Size: outer.n}, err
}

// known returns what a layer was when it last left the store.
func (s *Store) known(name string, how api.Compression) (packedLayer, bool) {
	info, err := s.layers.Get(filepath.Base(s.layer(name)))
	p, ok := info.Packed[how]
	return p, ok && err == nil
}

// remember notes in the record of a layer what it was when it left the store,
// which saves work the next time. So a failure does not count.
func (s *Store) remember(ctx context.Context, name string, how api.Compression, p packedLayer) {
	held, err := s.hold(ctx)
	if err != nil {
		return
	}
	defer held.Close()
	key := filepath.Base(s.layer(name))
	info, err := s.layers.Get(key)
	if err != nil || info.Packed[how] == p {
		return
	}
	if info.Packed == nil {
		info.Packed = map[api.Compression]packedLayer{}
	}
	info.Packed[how] = p
	_ = s.layers.Put(key, info, false)
}

// portSet returns exposed ports as the config of an image has them.
func portSet(ports []string) map[string]struct{} {
	if len(ports) == 0 {
		return nil
	}
	set := map[string]struct{}{}
	for _, port := range ports {
		set[port] = struct{}{}
	}
	return set
}

// manifestOf returns the config of an image whose layers are packed, and its
// manifest. They follow from the arguments alone.
func manifestOf(info Info, layers []packedLayer, how api.Compression) (config, manifest []byte, err error) {
	c := v1.ConfigFile{
		Architecture: info.Architecture, OS: "linux", Created: v1.Time{Time: info.CreatedAt.UTC()},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Env: info.Env, WorkingDir: info.WorkingDir, User: info.User, Entrypoint: info.Entrypoint, Cmd: info.Cmd,
			Healthcheck: healthConfig(info.HealthCheck), StopSignal: info.StopSignal,
			Labels: info.Labels, ExposedPorts: portSet(info.ExposedPorts),
		},
	}
	if c.Architecture == "" {
		c.Architecture = runtime.GOARCH
	}
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	for _, p := range layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, p.DiffID)
		c.History = append(c.History, v1.History{Created: c.Created, CreatedBy: "sandbox"})
		m.Layers = append(m.Layers, p.descriptor(how))
	}
	if config, err = encode(c); err != nil {
		return nil, nil, err
	}
	m.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: digestOf(config), Size: int64(len(config))}
	manifest, err = encode(m)
	return config, manifest, err
}
