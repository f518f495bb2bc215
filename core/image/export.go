package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"sandbox/api"
	"sandbox/core/fault"
)

// ExportOptions say how an image is exported.
type ExportOptions struct {
	Compression api.Compression // of its layers; "" is that of [api.CompressZstd]
	Progress    func(Progress)  // may be nil; it is as in [Store.Import]
}

// Export writes the image that ref names to w: the tar of an OCI image layout,
// which Import, podman and docker read. The same image always gives the same
// bytes. Files that have no names hold up to packedAhead layers meanwhile.
// Errors: ImageNotFound, InvalidArgument (ref, or the compression), Image (a
// layer is missing, or has what an archive can't have), TooLarge, Storage, those
// of w, and what ended ctx.
func (s *Store) Export(ctx context.Context, ref string, w io.Writer, o ExportOptions) error {
	how, err := CheckCompression(o.Compression)
	if err != nil {
		return err
	}
	info, free, err := s.leaving(ctx, ref)
	if err != nil {
		return err
	}
	defer free()
	a := &archive{tw: tar.NewWriter(w), has: map[v1.Hash]bool{}}
	if err := a.begin(); err != nil {
		return err
	}
	packed, err := s.packInOrder(ctx, info, how, reporting(o.Progress), a.layer)
	if err != nil {
		return err
	}
	return a.end(info, packed, how)
}

// leaving returns the image that ref names, whose layers are all there and stay
// until free is called.
func (s *Store) leaving(ctx context.Context, ref string) (info Info, free func(), err error) {
	keep, err := s.adding(ctx)
	if err != nil {
		return Info{}, nil, err
	}
	info, err = s.Inspect(ref)
	if err == nil {
		_, err = s.stack(info)
	}
	if err != nil {
		_ = keep.Close()
		return Info{}, nil, err
	}
	return info, func() { _ = keep.Close() }, nil
}

// reporting returns a function that calls progress, by one goroutine at a time.
func reporting(progress func(Progress)) func(Progress) {
	if progress == nil {
		return func(Progress) {}
	}
	var one sync.Mutex
	return func(p Progress) {
		one.Lock()
		defer one.Unlock()
		progress(p)
	}
}

// begin writes what an archive begins with. It says the format at once, for those
// who read it as a stream.
func (a *archive) begin() error {
	if err := a.file(layoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		if err := a.tw.WriteHeader(&tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
	}
	return nil
}

// archive is the tar of an OCI layout that is being written.
type archive struct {
	tw  *tar.Writer
	has map[v1.Hash]bool // blobs
}

// add writes one file.
func (a *archive) add(name string, size int64, r io.Reader) error {
	h := &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0)}
	if err := a.tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{a.tw}, r, make([]byte, pieceSize))
	return err
}

func (a *archive) file(name string, data []byte) error {
	return a.add(name, int64(len(data)), bytes.NewReader(data))
}

// layer writes a packed layer, once.
func (a *archive) layer(p parcel) error {
	if a.has[p.Digest] {
		return nil
	}
	a.has[p.Digest] = true
	return a.add(blobName(p.Digest), p.Size, p.file)
}

// end writes the documents of the image and ends the archive. Docker, unless it
// keeps its images in containerd, reads manifest.json; all others the index.
func (a *archive) end(info Info, layers []packedLayer, how api.Compression) error {
	config, manifest, err := manifestOf(info, layers, how)
	if err != nil {
		return err
	}
	index, err := indexOf(info, manifest)
	if err != nil {
		return err
	}
	docker, err := dockerManifest(info, config, layers)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{blobName(digestOf(config)), config}, {blobName(digestOf(manifest)), manifest}, {indexFile, index}, {manifestFile, docker}} {
		if err := a.file(f.name, f.data); err != nil {
			return err
		}
	}
	return a.tw.Close()
}

// indexOf returns the index of a layout with one image.
func indexOf(info Info, manifest []byte) ([]byte, error) {
	d := v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digestOf(manifest), Size: int64(len(manifest))}
	if tagged(info.Name) {
		d.Annotations = map[string]string{"org.opencontainers.image.ref.name": info.Name, "io.containerd.image.name": info.Name}
	}
	return encode(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{d}})
}

// tagged reports whether the name of an image is one that it can be given
// elsewhere, and not its digest at a registry.
func tagged(name string) bool { return !strings.Contains(name, "@") }

// dockerManifest returns the document that docker save writes beside a layout.
func dockerManifest(info Info, config []byte, layers []packedLayer) ([]byte, error) {
	m := dockerImage{Config: blobName(digestOf(config))}
	if tagged(info.Name) {
		m.RepoTags = []string{info.Name}
	}
	for _, p := range layers {
		m.Layers = append(m.Layers, blobName(p.Digest))
	}
	return encode([]dockerImage{m})
}

func encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	return data, fault.Wrap(fault.Internal, err, "encode a document of an image")
}
