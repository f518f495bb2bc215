package image

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sandbox/core/fault"
)

// The files by which the formats are recognized.
const (
	layoutFile   = "oci-layout"
	indexFile    = "index.json"
	manifestFile = "manifest.json" // of docker save
)

const (
	// maxDocument bounds each JSON document of an image.
	maxDocument = 8 << 20
	// maxIndexes bounds the number of indexes in an image, nested ones
	// included.
	maxIndexes = 32
)

// parts provides the documents and layers of an image, which refer to each
// other by digest. Documents are verified before they are returned.
type parts interface {
	manifest(ctx context.Context, d v1.Descriptor) ([]byte, error)
	config(ctx context.Context, d v1.Descriptor) ([]byte, error)
	layer(d v1.Descriptor) opener
}

// layoutParts are the parts of an image in an OCI layout.
type layoutParts struct{ files }

func (p layoutParts) manifest(_ context.Context, d v1.Descriptor) ([]byte, error) {
	return document(p, blobName(d.Digest), d.Digest)
}

func (p layoutParts) config(_ context.Context, d v1.Descriptor) ([]byte, error) {
	return document(p, blobName(d.Digest), d.Digest)
}

func (p layoutParts) layer(d v1.Descriptor) opener { return part(p, blobName(d.Digest)) }

// part returns an opener of a layer's file.
func part(from files, name string) opener {
	return func(context.Context, func(int64)) (io.ReadCloser, error) {
		r, _, err := from.open(name)
		return r, err
	}
}

// readLayout reads an OCI layout: an index of images or of further indexes.
func readLayout(ctx context.Context, from files) (content, error) {
	data, err := document(from, indexFile, v1.Hash{})
	if err != nil {
		return content{}, err
	}
	p := picker{from: layoutParts{from}}
	if err := p.lookInto(ctx, data); err != nil {
		return content{}, err
	}
	if len(p.found) > 1 {
		return content{}, fault.New(fault.Ambiguous, "the layout holds %d images, want one", len(p.found))
	}
	d, err := p.pick()
	if err != nil {
		return content{}, err
	}
	return readManifest(ctx, p.from, d)
}

// picker finds the image that is for this machine.
type picker struct {
	from    parts
	indexes int
	found   []v1.Descriptor
	others  []string // platforms of the images for other machines
}

// look collects the images that d describes, or that the index d contains.
func (p *picker) look(ctx context.Context, d v1.Descriptor) error {
	switch {
	case d.MediaType.IsIndex():
		return p.index(ctx, d)
	case !d.MediaType.IsImage():
		return nil // for example a signature
	case d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH && plainVariant(d.Platform.Variant):
		if !slices.ContainsFunc(p.found, func(f v1.Descriptor) bool { return f.Digest == d.Digest }) {
			p.found = append(p.found, d)
		}
	case d.Platform.OS != "unknown": // "unknown" is the platform of buildkit's attestations
		p.others = append(p.others, d.Platform.String())
	}
	return nil
}

// plainVariant reports whether every machine of the architecture can run this
// variant.
func plainVariant(variant string) bool { return variant == "" || variant == "v8" || variant == "v1" }

// index searches an index. An index can't contain itself, because it can't
// contain its own digest, but many indexes can form a tree that is too large to
// search. So their number is bounded.
func (p *picker) index(ctx context.Context, d v1.Descriptor) error {
	if p.indexes++; p.indexes > maxIndexes {
		return fault.New(fault.Image, "the image has over %d indexes", maxIndexes)
	}
	data, err := p.from.manifest(ctx, d)
	if err != nil {
		return err
	}
	return p.lookInto(ctx, data)
}

func (p *picker) lookInto(ctx context.Context, data []byte) error {
	var index v1.IndexManifest
	if err := decode(data, "an index", &index); err != nil {
		return err
	}
	for _, d := range index.Manifests {
		if err := p.look(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// pick returns the first image for this machine.
func (p *picker) pick() (v1.Descriptor, error) {
	switch {
	case len(p.found) > 0:
		return p.found[0], nil
	case len(p.others) > 0:
		return v1.Descriptor{}, fault.New(fault.Image, "the image is for %.200s, this machine is linux/%s", strings.Join(p.others, ", "), runtime.GOARCH)
	}
	return v1.Descriptor{}, fault.New(fault.Image, "the index holds no image")
}

// readManifest reads the image whose manifest d names.
func readManifest(ctx context.Context, from parts, d v1.Descriptor) (content, error) {
	data, err := from.manifest(ctx, d)
	if err != nil {
		return content{}, err
	}
	var m v1.Manifest
	if err := decode(data, "the manifest", &m); err != nil {
		return content{}, err
	}
	if len(m.Layers) > MaxLayers { // checked before anything is downloaded
		return content{}, tooManyLayers(len(m.Layers))
	}
	var c content
	if data, err = from.config(ctx, m.Config); err != nil {
		return content{}, err
	}
	if err := decode(data, "the config", &c.config); err != nil {
		return content{}, err
	}
	c.id = digestOf(data).String()
	for _, l := range m.Layers {
		if !l.MediaType.IsLayer() {
			return content{}, fault.New(fault.Image, "a layer of the unknown type %.100q", l.MediaType)
		}
		if err := checkDigest(l.Digest); err != nil {
			return content{}, err
		}
		c.layers = append(c.layers, blob{digest: l.Digest, size: l.Size, open: from.layer(l)})
	}
	return c, c.promise()
}

// dockerImage is an image in the manifest.json of docker save.
type dockerImage struct {
	Config   string // the names of files
	RepoTags []string
	Layers   []string
}

// readDocker reads what docker save writes.
func readDocker(from files) (content, error) {
	var images []dockerImage
	data, err := document(from, manifestFile, v1.Hash{})
	if err != nil {
		return content{}, err
	}
	if err := decode(data, manifestFile, &images); err != nil {
		return content{}, err
	}
	if len(images) != 1 {
		return content{}, fault.New(fault.Ambiguous, "the archive holds %d images, want one", len(images))
	}
	var c content
	if data, err = document(from, images[0].Config, nameDigest(images[0].Config)); err != nil {
		return content{}, err
	}
	if err := decode(data, "the config", &c.config); err != nil {
		return content{}, err
	}
	c.id = digestOf(data).String()
	for _, name := range images[0].Layers {
		r, size, err := from.open(name)
		if err != nil {
			return content{}, err
		}
		_ = r.Close()
		c.layers = append(c.layers, blob{size: size, open: part(from, name)})
	}
	return c, c.promise()
}

// promise sets the digest that each layer must have when it is decompressed.
// The config lists them.
func (c *content) promise() error {
	promised := c.config.RootFS.DiffIDs
	if len(promised) != len(c.layers) {
		return fault.New(fault.Image, "the image has %d layers and its config %d", len(c.layers), len(promised))
	}
	for i, diffID := range promised {
		if err := checkDigest(diffID); err != nil {
			return err
		}
		c.layers[i].diffID = diffID
	}
	return nil
}

func tooManyLayers(n int) error {
	return fault.New(fault.Image, "the image has %d layers, want 1 to %d", n, MaxLayers)
}

// document reads a JSON document and verifies its digest. If digest is zero,
// nothing is verified.
func document(from files, name string, digest v1.Hash) ([]byte, error) {
	r, size, err := from.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > maxDocument {
		return nil, fault.New(fault.Image, "part %.200q of the image has %d bytes", name, size)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxDocument))
	if err != nil {
		return nil, fault.Wrap(fault.Image, err, "part %.200q of the image", name)
	}
	if digest.Hex != "" && digestOf(data) != digest {
		return nil, fault.New(fault.Image, "part %.200q of the image has the digest %s", name, digestOf(data))
	}
	return data, nil
}

// decode parses a JSON document. what names the document in the error message.
func decode(data []byte, what string, v any) error {
	return fault.Wrap(fault.Image, json.NewDecoder(bytes.NewReader(data)).Decode(v), "%s of the image can't be read", what)
}

func blobName(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// nameDigest returns the digest in the file name of a docker config, or the
// zero digest if the name contains none.
func nameDigest(name string) v1.Hash {
	base := strings.TrimPrefix(path.Base(name), "sha256:")
	if !isHex(base) {
		return v1.Hash{}
	}
	return v1.Hash{Algorithm: "sha256", Hex: base[:64]}
}

// checkDigest refuses a digest that can't be the name of a layer's directory.
func checkDigest(h v1.Hash) error {
	if h.Algorithm != "sha256" || len(h.Hex) != 64 || !isHex(h.Hex) {
		return fault.New(fault.Image, "a layer with the digest %.100q, want sha256", h)
	}
	return nil
}
