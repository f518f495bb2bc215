package image

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sandbox/core/fault"
)

// The files that tell the formats.
const (
	layoutFile   = "oci-layout"
	manifestFile = "manifest.json" // of docker save
)

const (
	// maxDocument bounds each JSON document of an image.
	maxDocument = 8 << 20
	// maxIndexes bounds the indexes in an index, all together.
	maxIndexes = 32
)

// readLayout reads an OCI layout: an index of images, or of indexes.
func readLayout(from files) (content, error) {
	var top v1.IndexManifest
	if _, err := document(from, "index.json", v1.Hash{}, &top); err != nil {
		return content{}, err
	}
	p := picker{from: from}
	for _, d := range top.Manifests {
		if err := p.look(d); err != nil {
			return content{}, err
		}
	}
	d, err := p.pick()
	if err != nil {
		return content{}, err
	}
	return readManifest(from, d)
}

// picker looks for the image for this machine.
type picker struct {
	from    files
	indexes int
	found   []v1.Descriptor
	others  []string // platforms
}

// look takes the images below d.
func (p *picker) look(d v1.Descriptor) error {
	switch {
	case d.MediaType.IsIndex():
		return p.index(d)
	case !d.MediaType.IsImage():
		return nil // a signature or the like
	case d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH && plainVariant(d.Platform.Variant):
		if !slices.ContainsFunc(p.found, func(f v1.Descriptor) bool { return f.Digest == d.Digest }) {
			p.found = append(p.found, d)
		}
	case d.Platform.OS != "unknown": // buildkit's attestations
		p.others = append(p.others, d.Platform.String())
	}
	return nil
}

// plainVariant tells whether each machine of the architecture runs it.
func plainVariant(variant string) bool { return variant == "" || variant == "v8" || variant == "v1" }

// index looks into an index. One can't hold itself, as it can't hold its own
// digest, but many can make a tree without end.
func (p *picker) index(d v1.Descriptor) error {
	if p.indexes++; p.indexes > maxIndexes {
		return fault.New(fault.Image, "the image has over %d indexes", maxIndexes)
	}
	var index v1.IndexManifest
	if _, err := document(p.from, blobName(d.Digest), d.Digest, &index); err != nil {
		return err
	}
	for _, inner := range index.Manifests {
		if err := p.look(inner); err != nil {
			return err
		}
	}
	return nil
}

func (p *picker) pick() (v1.Descriptor, error) {
	switch {
	case len(p.found) == 1:
		return p.found[0], nil
	case len(p.found) > 1:
		return v1.Descriptor{}, fault.New(fault.Ambiguous, "the layout holds %d images, want one", len(p.found))
	case len(p.others) > 0:
		return v1.Descriptor{}, fault.New(fault.Image, "the image is for %.200s, this machine is linux/%s", strings.Join(p.others, ", "), runtime.GOARCH)
	}
	return v1.Descriptor{}, fault.New(fault.Image, "the layout holds no image")
}

// readManifest reads the image whose manifest d names.
func readManifest(from files, d v1.Descriptor) (content, error) {
	var m v1.Manifest
	if _, err := document(from, blobName(d.Digest), d.Digest, &m); err != nil {
		return content{}, err
	}
	var c content
	data, err := document(from, blobName(m.Config.Digest), m.Config.Digest, &c.config)
	if err != nil {
		return content{}, err
	}
	c.id = digestOf(data).String()
	var names []string
	for _, l := range m.Layers {
		if !l.MediaType.IsLayer() {
			return content{}, fault.New(fault.Image, "a layer of the unknown type %.100q", l.MediaType)
		}
		names = append(names, blobName(l.Digest))
	}
	if err := c.take(from, names); err != nil {
		return content{}, err
	}
	for i, l := range m.Layers {
		c.layers[i].digest = l.Digest
	}
	return c, nil
}

// readDocker reads what docker save writes.
func readDocker(from files) (content, error) {
	var images []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if _, err := document(from, manifestFile, v1.Hash{}, &images); err != nil {
		return content{}, err
	}
	if len(images) != 1 {
		return content{}, fault.New(fault.Ambiguous, "the archive holds %d images, want one", len(images))
	}
	var c content
	data, err := document(from, images[0].Config, nameDigest(images[0].Config), &c.config)
	if err != nil {
		return content{}, err
	}
	c.id = digestOf(data).String()
	return c, c.take(from, images[0].Layers)
}

// take makes blobs of the layers that lie under names, bottom first. The
// config says what they unpack to.
func (c *content) take(from files, names []string) error {
	promised := c.config.RootFS.DiffIDs
	if len(promised) != len(names) {
		return fault.New(fault.Image, "the image has %d layers and its config %d", len(names), len(promised))
	}
	if len(names) > maxLayers {
		return fault.New(fault.Image, "the image has %d layers, want 1 to %d", len(names), maxLayers)
	}
	for i, name := range names {
		r, size, err := from.open(name)
		if err != nil {
			return err
		}
		_ = r.Close()
		if err := checkDigest(promised[i]); err != nil {
			return err
		}
		c.layers = append(c.layers, blob{diffID: promised[i], size: size, open: func() (io.ReadCloser, error) {
			r, _, err := from.open(name)
			return r, err
		}})
	}
	return nil
}

// document reads a JSON document into v, once its bytes are what digest says.
// Of a zero digest nothing is asked.
func document(from files, name string, digest v1.Hash, v any) ([]byte, error) {
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
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(v); err != nil {
		return nil, fault.Wrap(fault.Image, err, "part %.200q of the image", name)
	}
	return data, nil
}

func blobName(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// nameDigest gives the digest that docker names a config by, if it does.
func nameDigest(name string) v1.Hash {
	base := strings.TrimPrefix(path.Base(name), "sha256:")
	if !isHex(base) {
		return v1.Hash{}
	}
	return v1.Hash{Algorithm: "sha256", Hex: base[:64]}
}

// checkDigest refuses what does not name a layer's folder.
func checkDigest(h v1.Hash) error {
	if h.Algorithm != "sha256" || len(h.Hex) != 64 || !isHex(h.Hex) {
		return fault.New(fault.Image, "a layer with the digest %.100q, want sha256", h)
	}
	return nil
}
