package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// MaxLayers is the number of layers that one overlayfs mount is certain to
// accept: all their names must fit into the one page of mount options. Docker
// makes images of up to 127 layers.
const MaxLayers = 128

// Progress is how far one layer of an import or a pull has come.
type Progress = api.ImageProgress

// content is an image as its source provides it.
type content struct {
	id     string // "" if the source is a bare root file system
	config v1.ConfigFile
	layers []blob
	close  func() // closes the source
}

// blob is a layer as its source provides it.
type blob struct {
	diffID v1.Hash // of the plain tar; zero if it is only known once the tar was read
	digest v1.Hash // of the bytes that open returns, to be verified; zero if it is unknown, or if open verifies it
	size   int64   // of the bytes that open returns; 0 if unknown
	open   opener
}

// opener returns the bytes of a blob. An opener that has to download them
// reports its progress to fetched.
type opener func(ctx context.Context, fetched func(done int64)) (io.ReadCloser, error)

// Import makes an image of source and names it ref. It replaces an image
// that had that name. Source is a directory with a root file system, a tar of
// one (plain, gzip or zstd), a docker-archive (what docker save writes), an OCI
// layout, or a tar of one. A directory with a file `oci-layout` is treated as a
// layout. progress may be nil; it is called often, by one goroutine
// at a time, and must be quick.
// Errors: InvalidArgument (the name is invalid, the source is missing), Image
// (the image is hostile, damaged or for another machine), Ambiguous (the archive
// holds several images), Storage.
func (s *Store) Import(ctx context.Context, ref, source string, progress func(Progress)) (Info, error) {
	return s.importFrom(ctx, ref, progress, func() (content, error) { return s.open(ctx, source) })
}

// ImportTar does what Import does with the tar that r returns, of at most
// maxStream bytes. The tar is kept in a file without a name meanwhile. Errors:
// those of Import, TooLarge, and a classified error of r.
func (s *Store) ImportTar(ctx context.Context, ref string, r io.Reader, progress func(Progress)) (Info, error) {
	return s.importFrom(ctx, ref, progress, func() (content, error) { return s.keep(ctx, r) })
}

func (s *Store) importFrom(ctx context.Context, ref string, progress func(Progress), open func() (content, error)) (Info, error) {
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
	if err := s.room(); err != nil {
		return Info{}, err
	}
	c, err := open()
	if err != nil {
		return Info{}, err
	}
	defer c.close()
	return s.add(ctx, Info{Name: full}, c, progress)
}

// parallel is how many layers of an image are processed at once: while one
// waits for its bytes, others are unpacked.
const parallel = 3

// add puts the layers of c into the store, and then the image's record.
func (s *Store) add(ctx context.Context, info Info, c content, progress func(Progress)) (Info, error) {
	if err := suits(c); err != nil {
		return Info{}, err
	}
	keep, err := s.adding(ctx)
	if err != nil {
		return Info{}, err
	}
	defer keep.Close()
	digests := make([]v1.Hash, len(c.layers))
	sizes := make([]int64, len(c.layers))
	var reporting sync.Mutex
	all, ctx2 := errgroup.WithContext(ctx)
	all.SetLimit(parallel)
	for i, b := range c.layers {
		all.Go(func() error {
			var err error
			digests[i], sizes[i], err = s.ensure(ctx2, b, func(stage api.ImageStage, done int64) {
				reporting.Lock()
				defer reporting.Unlock()
				progress(Progress{Layer: i + 1, Layers: len(c.layers), Stage: stage, Done: done, Total: b.size})
			})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return Info{}, err
	}
	describe(&info, c)
	for i, digest := range digests {
		info.Layers = append(info.Layers, digest.String())
		info.Size += sizes[i]
	}
	if info.ID == "" {
		if info.ID, err = identify(c.config, digests); err != nil {
			return Info{}, err
		}
	}
	return info, s.record(ctx, info)
}

// record writes the image's record, which makes the image known. The record
// survives a power cut. Its layers may not, but a layer that was damaged is
// recognized by its mark.
func (s *Store) record(ctx context.Context, info Info) error {
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	dirs, err := s.stack(info)
	if err != nil { // a concurrent Remove found no image that needed the layer
		return err
	}
	if err := s.images.Put(key(info.Name), info, true); err != nil {
		return err
	}
	if !slices.ContainsFunc(dirs, func(dir string) bool { return !layer.OnDisk(dir) }) {
		return nil
	}
	_ = s.c.Unpacker.Flush(ctx) // if it fails, the next shim flushes when it starts
	return nil
}

// suits refuses an image that can't run on this machine.
func suits(c content) error {
	system, arch := c.config.OS, c.config.Architecture
	if arch != "" && arch != runtime.GOARCH || system != "" && system != "linux" {
		return fault.New(fault.Image, "the image is for %s/%s, this machine is linux/%s", system, arch, runtime.GOARCH)
	}
	if len(c.layers) == 0 || len(c.layers) > MaxLayers {
		return tooManyLayers(len(c.layers))
	}
	return nil
}

// describe copies what the image's config says into i.
func describe(i *Info, c content) {
	set := c.config.Config
	i.ID, i.Architecture, i.CreatedAt = c.id, c.config.Architecture, c.config.Created.UTC()
	i.Env, i.WorkingDir, i.User, i.Entrypoint, i.Cmd = set.Env, set.WorkingDir, set.User, set.Entrypoint, set.Cmd
	i.HealthCheck, i.StopSignal = healthOf(set.Healthcheck), set.StopSignal
	i.Labels, i.ExposedPorts = set.Labels, slices.Sorted(maps.Keys(set.ExposedPorts))
	if i.CreatedAt.Unix() <= 0 { // the date is missing, or was zeroed for a reproducible build
		i.CreatedAt = time.Now().UTC()
	}
}

// identify returns an ID for an image that has no config: the digest of a
// plain config that lists its layers.
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
