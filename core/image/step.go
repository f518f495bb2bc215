package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// Step is what a step of a build has made: an image without a name.
type Step struct {
	Key       string    `json:"key"`
	Layers    []string  `json:"layers"` // as those of an [Info]
	CreatedAt time.Time `json:"created_at"`
}

// Keep makes all layers stay that are in the store, whoever needs them, until free is
// called. Errors: Storage, and what ended ctx.
func (s *Store) Keep(ctx context.Context) (free func(), err error) {
	if err := s.sweep(ctx); err != nil {
		return nil, err
	}
	keep, err := s.adding(ctx)
	if err != nil {
		return nil, err
	}
	return func() { _ = keep.Close() }, nil
}

// Made returns what a step with a key has made before, if that is still there.
func (s *Store) Made(key string) (Step, bool) {
	step, err := s.steps.Get(key)
	if err != nil {
		return Step{}, false
	}
	_, err = s.stack(Info{Layers: step.Layers})
	return step, err == nil && len(step.Layers) > 0
}

// Make carries out a step and notes what it has made under a key, 64 hexadecimal digits.
// It calls take with the key that the step's layer is to have, and take makes that layer
// and returns the image. The caller holds the layers with [Store.Keep]. Errors: Storage,
// and those of take.
func (s *Store) Make(ctx context.Context, key string, take func(layer string) (core.Image, error)) (Step, error) {
	made, err := layerKey()
	if err != nil {
		return Step{}, err
	}
	img, err := take(made)
	if err != nil {
		return Step{}, err
	}
	step := Step{Key: key, CreatedAt: time.Now().UTC()}
	for _, dir := range img.Layers {
		step.Layers = append(step.Layers, s.layerName(filepath.Base(dir)))
	}
	if err := s.note(context.WithoutCancel(ctx), made, step); err != nil {
		return Step{}, err
	}
	s.added(snapshotPrefix + made)
	return step, nil
}

// note writes the records of a step and of its layer. The store is held meanwhile, or a
// sweep of another build would take their files for those of a writer that has died.
func (s *Store) note(ctx context.Context, made string, step Step) error {
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := s.layers.Put(made, layerInfo{Snapshot: true}, false); err != nil {
		return err
	}
	return s.steps.Put(step.Key, step, true)
}

// On returns what a box needs of an image that may have no name, to stand on it. Errors:
// Image (a layer is missing).
func (s *Store) On(info Info) (core.Image, error) {
	layers, err := s.stack(info)
	return core.Image{Ref: info.Name, ID: info.ID, Layers: layer.Squashed(layers, 0), Env: info.Env, WorkingDir: info.WorkingDir, User: info.User}, err
}

// Scratch returns an image without files and without a name. It has one layer, which is
// empty, because a box must stand on something. Errors: Storage, Engine.
func (s *Store) Scratch(ctx context.Context) (Info, error) {
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		return Info{}, fault.Wrap(fault.Internal, err, "make an empty layer")
	}
	b := blob{diffID: digestOf(empty.Bytes()), size: int64(empty.Len()), open: func(context.Context, func(int64)) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(empty.Bytes())), nil
	}}
	digest, size, err := s.ensure(ctx, b, func(api.ImageStage, int64) {})
	info := Info{Architecture: runtime.GOARCH, Layers: []string{digest.String()}, Size: size, CreatedAt: time.Unix(0, 0).UTC()}
	if err == nil {
		info.ID, err = identify(v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux"}, []v1.Hash{digest})
	}
	return info, err
}

// builtPrefix begins the names of images that were built and given no name.
const builtPrefix = "build:"

// Commit adds an image that was built. It replaces one that had its name. An image
// without a name gets one that is made of its id. Errors: InvalidArgument (the name),
// Image (a layer is missing), Storage, and what ended ctx.
func (s *Store) Commit(ctx context.Context, info Info) (Info, error) {
	info.Digest, info.Parent, info.Box, info.Size = "", "", "", 0
	for _, name := range info.Layers {
		info.Size += s.added(name)
	}
	var err error
	if info.ID, err = identifySnapshot(info); err != nil {
		return Info{}, err
	}
	if info.Name == "" {
		info.Name = builtPrefix + info.ID[len(digestPrefix):][:keyDigits]
	}
	if info.Name, err = normal(info.Name); err != nil {
		return Info{}, err
	}
	return info, s.record(ctx, info)
}

// forgetSteps forgets the steps of builds that have a layer which no image has, and
// returns how many there were. The other ones take no room. The caller holds the store.
func (s *Store) forgetSteps() (int, error) {
	images, damaged, err := s.images.List()
	if err != nil || len(damaged) > 0 { // a damaged record may have any layer, and then none is removed
		return 0, err
	}
	needed := map[string]bool{}
	for _, info := range images {
		for _, name := range info.Layers {
			needed[name] = true
		}
	}
	steps, lost, err := s.steps.List()
	if err != nil {
		return 0, err
	}
	var keys []string
	for _, d := range lost {
		keys = append(keys, d.Key)
	}
	for _, step := range steps {
		if slices.ContainsFunc(step.Layers, func(name string) bool { return !needed[name] }) {
			keys = append(keys, step.Key)
		}
	}
	for _, key := range keys {
		err = errors.Join(err, s.steps.Delete(key))
	}
	return len(keys), err
}
