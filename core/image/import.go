package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sandbox/core/fault"
)

// maxLayers is what overlayfs stacks.
const maxLayers = 500

// Progress is how far an import has come.
type Progress struct {
	Layer, Layers int   // from 1
	Done, Total   int64 // bytes read of the layer as its source has it; Total 0: unknown
}

// content is an image as a source offers it.
type content struct {
	id     string // "" for a bare root file system
	config v1.ConfigFile
	layers []blob
	close  func() // gives up the source
}

// blob is a layer as a source offers it.
type blob struct {
	diffID v1.Hash // of the plain tar; zero: not known before it was read
	digest v1.Hash // of what open gives; zero: the source does not say
	size   int64   // of what open gives; 0: unknown
	open   func() (io.ReadCloser, error)
}

// Import makes an image of source and calls it ref, in place of one that had
// the name. Source is a folder with a root file system, a tar of one (plain,
// gzip or zstd), a docker-archive (what docker save writes), an OCI layout, or
// a tar of one. A folder with a file `oci-layout` is a layout. progress may be
// nil; it is called often, by one goroutine at a time, and must be quick.
// Errors: InvalidArgument (name, source missing), Image (hostile or damaged,
// for another machine), Ambiguous (an archive of several images), Storage.
func (s *Store) Import(ctx context.Context, ref, source string, progress func(Progress)) (Info, error) {
	full, err := normal(ref)
	if err != nil {
		return Info{}, err
	}
	if progress == nil {
		progress = func(Progress) {}
	}
	if err := s.sweep(ctx); err != nil {
		return Info{}, err
	}
	c, err := s.open(ctx, source)
	if err != nil {
		return Info{}, err
	}
	defer c.close()
	return s.add(ctx, full, c, progress)
}

// add has the layers of c in the store, and then its record.
func (s *Store) add(ctx context.Context, full string, c content, progress func(Progress)) (Info, error) {
	if err := suits(c); err != nil {
		return Info{}, err
	}
	info := describe(full, c)
	var digests []v1.Hash
	for i, b := range c.layers {
		p := Progress{Layer: i + 1, Layers: len(c.layers), Total: b.size}
		diffID, have, err := s.ensure(ctx, b, func(done int64) { p.Done = done; progress(p) })
		if err != nil {
			return Info{}, err
		}
		digests = append(digests, diffID)
		info.Layers = append(info.Layers, diffID.String())
		info.Size += have.Size
	}
	if info.ID == "" {
		var err error
		if info.ID, err = identify(c.config, digests); err != nil {
			return Info{}, err
		}
	}
	return info, s.record(ctx, info)
}

// record makes the image known, durably.
func (s *Store) record(ctx context.Context, info Info) error {
	if err := s.syncLayers(); err != nil {
		return err
	}
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	if _, err := s.stack(info); err != nil { // a Remove elsewhere saw no image need it
		return err
	}
	return s.images.Put(key(info.Name), info, true)
}

// suits refuses an image that can't run here.
func suits(c content) error {
	system, arch := c.config.OS, c.config.Architecture
	if arch != "" && arch != runtime.GOARCH || system != "" && system != "linux" {
		return fault.New(fault.Image, "the image is for %s/%s, this machine is linux/%s", system, arch, runtime.GOARCH)
	}
	if len(c.layers) == 0 || len(c.layers) > maxLayers {
		return fault.New(fault.Image, "the image has %d layers, want 1 to %d", len(c.layers), maxLayers)
	}
	return nil
}

func describe(full string, c content) Info {
	set := c.config.Config
	info := Info{
		Name: full, ID: c.id, Architecture: c.config.Architecture,
		Env: set.Env, WorkingDir: set.WorkingDir, User: set.User, Entrypoint: set.Entrypoint, Cmd: set.Cmd,
		CreatedAt: c.config.Created.UTC(),
	}
	if info.CreatedAt.Unix() <= 0 { // left out, or blanked to be reproducible
		info.CreatedAt = time.Now().UTC()
	}
	return info
}

// identify gives an image that has no config the digest of a plain one.
func identify(config v1.ConfigFile, layers []v1.Hash) (string, error) {
	config.RootFS = v1.RootFS{Type: "layers", DiffIDs: layers}
	data, err := json.Marshal(config)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "encode an image config")
	}
	return digestOf(data).String(), nil
}

func digestOf(data []byte) v1.Hash {
	sum := sha256.Sum256(data)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}
