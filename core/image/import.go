package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// maxLayers is what one mount of overlayfs surely takes: the names of all have
// to fit into its one page of options. Docker makes images of up to 127.
const maxLayers = 128

// Stage is what is being done to a layer.
type Stage string

// The stages of a layer.
const (
	Fetching  Stage = "fetch"
	Unpacking Stage = "unpack"
	Finished  Stage = "done" // also of a layer that was there already
)

// Progress is how far one layer has come.
type Progress struct {
	Layer, Layers int // from 1
	Stage         Stage
	Done, Total   int64 // bytes of the layer as its source has it; Total 0: unknown
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
	digest v1.Hash // of what open gives, to be verified; zero: not known, or verified by open
	size   int64   // of what open gives; 0: unknown
	open   opener
}

// opener gives the bytes of a blob. One that has to get them from elsewhere
// tells fetched how far it has come.
type opener func(ctx context.Context, fetched func(done int64)) (io.ReadCloser, error)

// Import makes an image of source and calls it ref, in place of one that had
// the name. Source is a directory with a root file system, a tar of one (plain,
// gzip or zstd), a docker-archive (what docker save writes), an OCI layout, or
// a tar of one. A directory with a file `oci-layout` is a layout. progress may be
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
	return s.add(ctx, Info{Name: full}, c, progress)
}

// parallel is how many layers of an image are made at once: while one waits
// for its bytes, others are unpacked.
const parallel = 3

// add has the layers of c in the store, and then its record.
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
			digests[i], sizes[i], err = s.ensure(ctx2, b, func(stage Stage, done int64) {
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
	info.describe(c)
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

// record makes the image known. Its record outlives a power cut; what of its
// layers does, it can tell.
func (s *Store) record(ctx context.Context, info Info) error {
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	dirs, err := s.stack(info)
	if err != nil { // a Remove elsewhere saw no image need it
		return err
	}
	if err := s.images.Put(key(info.Name), info, true); err != nil {
		return err
	}
	if !slices.ContainsFunc(dirs, func(dir string) bool { return !layer.OnDisk(dir) }) {
		return nil
	}
	_ = s.c.Unpacker.Flush(ctx) // else: the next shim does so as it begins
	return nil
}

// suits refuses an image that can't run here.
func suits(c content) error {
	system, arch := c.config.OS, c.config.Architecture
	if arch != "" && arch != runtime.GOARCH || system != "" && system != "linux" {
		return fault.New(fault.Image, "the image is for %s/%s, this machine is linux/%s", system, arch, runtime.GOARCH)
	}
	if len(c.layers) == 0 || len(c.layers) > maxLayers {
		return tooManyLayers(len(c.layers))
	}
	return nil
}

// describe takes over what the image's config says.
func (i *Info) describe(c content) {
	set := c.config.Config
	i.ID, i.Architecture, i.CreatedAt = c.id, c.config.Architecture, c.config.Created.UTC()
	i.Env, i.WorkingDir, i.User, i.Entrypoint, i.Cmd = set.Env, set.WorkingDir, set.User, set.Entrypoint, set.Cmd
	if i.CreatedAt.Unix() <= 0 { // left out, or blanked to be reproducible
		i.CreatedAt = time.Now().UTC()
	}
}

// identify returns an image that has no config the digest of a plain one.
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
