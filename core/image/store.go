// Package image keeps the images of a home, unpacked and ready to be mounted:
//
//	images/KEY.json    what is known of an image, by its name
//	layers/HEX/        the tree of a layer; HEX is the sha256 of its plain tar
//	layers/HEX.json    its size
//	layers/tmp-*       what is being made, or was when somebody died
//
// A layer appears by rename once it is whole and its digest was verified, and
// never changes. Images share layers.
package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/store"
)

// Unpacker does the privileged part of making a layer.
type Unpacker interface {
	// Unpack reads a plain tar stream to its end and extracts it into the
	// new folder dir (inside the home), in a child process that holds no
	// more right than that needs. dir does not exist on failure.
	// Errors: Image (a hostile or damaged tar), Storage.
	Unpack(ctx context.Context, tar io.Reader, dir string) error
}

// Config is what a Store is made of.
type Config struct {
	Home     string // absolute
	Unpacker Unpacker
	// InUse gives the folders of the layers that boxes stand on. A box's
	// record is written before its layers are mounted, so that a layer
	// that InUse does not name is free. Without InUse no layer is deleted.
	InUse func() ([]string, error)
}

// Store is the images of one home. It is safe for concurrent use, also by
// several processes.
type Store struct {
	c      Config
	images store.Dir[Info]
	layers store.Dir[layerInfo]
}

// Info is what is known of an image.
type Info struct {
	Name         string    `json:"name"` // with its tag
	ID           string    `json:"id"`   // sha256:..., the digest of its config
	Layers       []string  `json:"layers"`
	Size         int64     `json:"size"` // bytes of its layers as plain tars
	Architecture string    `json:"architecture,omitempty"`
	Env          []string  `json:"env,omitempty"`
	WorkingDir   string    `json:"working_dir,omitempty"`
	User         string    `json:"user,omitempty"`
	Entrypoint   []string  `json:"entrypoint,omitempty"` // shown, not run
	Cmd          []string  `json:"cmd,omitempty"`        // shown, not run
	CreatedAt    time.Time `json:"created_at"`           // of the image, or of its import if it does not say
}

// Open opens the image store of a home. It makes nothing.
func Open(c Config) (*Store, error) {
	return &Store{
		c:      c,
		images: store.Dir[Info]{Path: filepath.Join(c.Home, "images")},
		layers: store.Dir[layerInfo]{Path: filepath.Join(c.Home, "layers")},
	}, nil
}

// List gives all images in the order of their names. Errors: Storage; the
// images that can be read come with it.
func (s *Store) List() ([]Info, error) {
	all, err := s.images.List()
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Inspect gives the image that ref names. Errors: ImageNotFound,
// InvalidArgument (no reference), Storage.
func (s *Store) Inspect(ref string) (Info, error) {
	full, err := normal(ref)
	if err != nil {
		return Info{}, err
	}
	info, err := s.images.Get(key(full))
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, fault.New(fault.ImageNotFound, "no image %q in the store", full)
	}
	return info, err
}

// Resolve gives the image that ref names, for a box to start from.
// Errors: Image (it is not in the store, or a layer of it has gone), Storage.
func (s *Store) Resolve(_ context.Context, ref string) (core.Image, error) {
	info, err := s.Inspect(ref)
	switch {
	case fault.Is(err, fault.ImageNotFound):
		return core.Image{}, fault.New(fault.Image, "no image %q in the store: import one with `sandbox images import NAME SOURCE`", ref)
	case fault.Is(err, fault.InvalidArgument):
		return core.Image{}, fault.Wrap(fault.Image, err, "find an image")
	case err != nil:
		return core.Image{}, err
	}
	layers, err := s.stack(info)
	return core.Image{Ref: info.Name, ID: info.ID, Layers: layers, Env: info.Env, WorkingDir: info.WorkingDir, User: info.User}, err
}

// stack gives the folders of an image's layers, bottom first. Errors: Image
// (one has gone).
func (s *Store) stack(info Info) ([]string, error) {
	var dirs []string
	for _, digest := range info.Layers {
		dir := s.layer(digest)
		if _, err := os.Stat(dir); err != nil {
			return nil, fault.Wrap(fault.Image, err, "image %q has lost a layer, import it again", info.Name)
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// Remove forgets the image that ref names, and deletes all layers that no
// image and no box needs any more. Errors: ImageNotFound, InvalidArgument,
// Storage, and what ended ctx while another process held the store.
func (s *Store) Remove(ctx context.Context, ref string) error {
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	garbage, err := s.forget(ref)
	_ = held.Close()
	for _, dir := range garbage {
		if rmErr := os.RemoveAll(dir); err == nil {
			err = store.Fault(rmErr, "delete a layer of image %q", ref)
		}
	}
	return err
}

// forget does what must be done while the store is held.
func (s *Store) forget(ref string) (garbage []string, err error) {
	info, err := s.Inspect(ref)
	if err != nil {
		return nil, err
	}
	if err := s.images.Delete(key(info.Name)); err != nil {
		return nil, err
	}
	return s.collect()
}

// normal gives the one spelling of a reference: with its tag, `latest` if it
// names none. Registries are part of the name as they are written; short names
// for docker.io are the business of a pull.
func normal(ref string) (string, error) {
	tag, err := name.NewTag(ref, name.WithDefaultRegistry(""))
	if err != nil {
		return "", fault.Wrap(fault.InvalidArgument, err, "image name %q", ref)
	}
	for part := range strings.SplitSeq(ref, "/") { // the library takes /x and ../x
		if part == "" || strings.ContainsRune("._-:", rune(part[0])) {
			return "", fault.New(fault.InvalidArgument, "image name %q: each part begins with a letter or digit", ref)
		}
	}
	return tag.Name(), nil
}

// key is the record key of a normal name, which may be longer than a file's
// and holds slashes.
func key(full string) string {
	sum := sha256.Sum256([]byte(full))
	return hex.EncodeToString(sum[:])
}

// layer gives the folder of the layer with a digest.
func (s *Store) layer(digest string) string {
	return filepath.Join(s.layers.Path, strings.TrimPrefix(digest, "sha256:"))
}

// hold takes the store for a step that concerns images and layers together.
// Closing the file lets go.
func (s *Store) hold(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(s.layers.Path, 0o700); err != nil {
		return nil, store.Fault(err, "make the image store")
	}
	f, err := lock(ctx, filepath.Join(s.layers.Path, "lock"))
	if err != nil {
		return nil, fmt.Errorf("hold the image store: %w", err)
	}
	return f, nil
}
