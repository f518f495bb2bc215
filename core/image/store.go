// Package image keeps the images of a home, unpacked and ready to be mounted:
//
//	images/KEY.json    what is known of an image; KEY is derived from its name
//	layers/HEX/        the files of a layer; HEX is the sha256 of its plain tar, or
//	                   a random key if the layer was made of the disk of a box
//	layers/HEX.json    the size of the layer
//	layers/tmp-*       a layer that is being made, or was when its maker died
//	steps/KEY.json     what a step of a build has made; KEY is the digest of what the
//	                   step was, and of what it stood on
//	blobs/partial-HEX  a compressed layer that was downloaded only in part
//
// A layer gets its name by a rename once it is complete and its digest was
// verified, and never changes. Images share layers. A layer that was not yet on
// the disk when the power was cut does not count as a layer any more; see
// [layer.Flush].
package image

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/image/layer"
	"sandbox/core/store"
)

// Unpacker does the privileged part of making a layer.
type Unpacker interface {
	// Unpack reads a plain tar stream to its end and extracts it into the
	// new directory dir (inside the home), in a child process that has no
	// more rights than it needs for that. On failure dir does not exist.
	// Errors: Image (a hostile or damaged tar), Storage.
	Unpack(ctx context.Context, tar io.Reader, dir string) error
	// Flush arranges that [layer.Flush] is called for the home's layers
	// soon. It does not wait for the disk, and the calling process may end.
	// Errors: Engine.
	Flush(ctx context.Context) error
	// Pack writes the layer in dir to w, as [layer.Pack] does: a layer that is the
	// disk of a box is mounted nowhere else. Errors: those of [layer.Pack], Engine.
	Pack(ctx context.Context, dir string, w io.Writer) error
}

// Config configures a [Store].
type Config struct {
	Home     string // absolute path of the home
	Unpacker Unpacker
	// InUse returns the images that boxes were made from. A box's record is
	// written before its layers are mounted, so a layer of no image that
	// InUse returns is free. If InUse is nil, no layer is ever deleted.
	InUse func() ([]core.ImageUse, error)
	// Sources says where images are pulled from.
	Sources Sources
	// Discard removes a directory of the store with what is in it; nil for os.RemoveAll. A
	// user who is not root can't remove all of a layer, but the shim can.
	Discard func(dir string) error
	// Room returns why nothing that is large may be written to the home, of which some
	// space has to stay free, or nil; it is asked often. nil: all of the disk may be used.
	Room func() error
}

// Store holds the images of one home. It is safe for concurrent use, also by
// several processes.
type Store struct {
	c      Config
	images store.Dir[Info]
	layers store.Dir[layerInfo]
	steps  store.Dir[Step]

	mu    sync.Mutex
	pulls map[string]*pull // by the full name of the image
}

// Info is what the store knows about an image: its record, and the contract's
// document.
type Info = api.Image

// Open returns the image store of a home. It creates nothing on disk.
func Open(c Config) (*Store, error) {
	if c.Discard == nil {
		c.Discard = os.RemoveAll
	}
	return &Store{
		c:      c,
		images: store.Dir[Info]{Path: filepath.Join(c.Home, "images")},
		layers: store.Dir[layerInfo]{Path: filepath.Join(c.Home, "layers")},
		steps:  store.Dir[Step]{Path: filepath.Join(c.Home, "steps")},
		pulls:  map[string]*pull{},
	}, nil
}

// List returns all images, ordered by name. Errors: Storage; the images that
// can be read are returned with it.
func (s *Store) List() ([]Info, error) {
	all, damaged, err := s.images.List()
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	measured := map[string]int64{}
	for i := range all {
		all[i].Size = s.size(all[i], measured)
	}
	return all, errors.Join(err, store.Errors(damaged))
}

// Describe returns what Inspect does, with the size that List tells. Errors: those of
// Inspect.
func (s *Store) Describe(ref string) (Info, error) {
	info, err := s.Inspect(ref)
	info.Size = s.size(info, map[string]int64{})
	return info, err
}

// size returns the size of an image. That of a snapshot is not in its record, since
// measuring a disk takes longer than taking it. measured has the sizes of layers by their
// names: many snapshots of one box share most of them.
func (s *Store) size(info Info, measured map[string]int64) int64 {
	if info.Box == "" {
		return info.Size
	}
	sum := int64(0)
	for _, name := range info.Layers {
		if _, ok := measured[name]; !ok {
			measured[name] = s.added(name)
		}
		sum += measured[name]
	}
	return sum
}

// Inspect returns the image that ref names: one that was imported under exactly
// that name, or the one that a pull of ref would have made. Errors:
// ImageNotFound, InvalidArgument (ref is not a reference), Storage.
func (s *Store) Inspect(ref string) (Info, error) {
	names, err := s.names(ref)
	if err != nil {
		return Info{}, err
	}
	for _, full := range names {
		info, err := s.images.Get(key(full))
		if !errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
	return Info{}, fault.New(fault.ImageNotFound, "no image %q in the store", ref)
}

// Resolve returns the image that ref names, for a box to start from. It pulls
// an image that is not in the store. Errors: Image (the image can't be
// obtained, or one of its layers is missing), Storage, and what ended ctx.
func (s *Store) Resolve(ctx context.Context, ref string) (core.Image, error) {
	info, err := s.obtain(ctx, ref)
	if err != nil {
		return core.Image{}, err
	}
	layers, err := s.stack(info)
	return core.Image{
		Ref: info.Name, ID: info.ID, Layers: layer.Squashed(layers, 0), Env: info.Env, WorkingDir: info.WorkingDir, User: info.User,
		Command: slices.Concat(info.Entrypoint, info.Cmd), HealthCheck: info.HealthCheck, StopSignal: info.StopSignal,
	}, err
}

// Command implements [core.Images]. Errors: as Resolve.
func (s *Store) Command(ctx context.Context, ref string) ([]string, error) {
	info, err := s.obtain(ctx, ref)
	return slices.Concat(info.Entrypoint, info.Cmd), err
}

// obtain returns the image that ref names, for a box. It pulls an image that is
// not in the store. Errors: as Resolve.
func (s *Store) obtain(ctx context.Context, ref string) (Info, error) {
	info, err := s.Get(ctx, ref, nil)
	if err != nil && slices.Contains([]fault.Kind{fault.ImageNotFound, fault.InvalidArgument, fault.Upstream, fault.Config}, fault.Of(err).Kind) {
		err = fault.Wrap(fault.Image, err, "")
	}
	return info, err
}

// stack returns the directories of an image's layers, bottom first. If an image
// has a layer twice, only the upper one is returned: it is enough, and
// overlayfs accepts a directory only once. Errors: Image (a layer is missing).
func (s *Store) stack(info Info) ([]string, error) {
	var dirs []string
	for i, digest := range info.Layers {
		if slices.Contains(info.Layers[i+1:], digest) {
			continue
		}
		dir := s.layer(digest)
		if !layer.Whole(dir) {
			return nil, fault.New(fault.Image, "image %q lacks a layer, perhaps after a power cut: pull or import it again", info.Name)
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// Remove forgets the image that ref names, and deletes all layers that no image
// and no box needs any more. It removes an image that boxes were made from, or
// that another alias than ref stands for, only with force; the boxes keep their
// files. Errors: ImageNotFound, InvalidArgument, InvalidState (it is in use),
// Storage, and what ended ctx while another process held the store.
func (s *Store) Remove(ctx context.Context, ref string, force bool) error {
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	garbage, err := s.forget(ref, force)
	_ = held.Close()
	return cmp.Or(s.discard(garbage), err)
}

// forget does the part of Remove that needs the store to be held.
func (s *Store) forget(ref string, force bool) (garbage []string, err error) {
	info, err := s.Inspect(ref)
	if err != nil {
		return nil, err
	}
	if !force {
		if err := s.refuseInUse(ref, info); err != nil {
			return nil, err
		}
	}
	if err := s.images.Delete(key(info.Name)); err != nil {
		return nil, err
	}
	return s.collect()
}

// key returns the record key of a normal name. The name itself can't be a file
// name: it may be too long and contains slashes.
func key(full string) string {
	sum := sha256.Sum256([]byte(full))
	return hex.EncodeToString(sum[:])
}

// layer returns the directory of the layer that has a name in the record of an
// image: its directory's own name stands behind a colon.
func (s *Store) layer(name string) string {
	return filepath.Join(s.layers.Path, name[strings.IndexByte(name, ':')+1:])
}

// blobs returns the directory of the partly downloaded layers.
func (s *Store) blobs() string { return filepath.Join(s.c.Home, "blobs") }

// hold locks the store for a step that changes images and layers together.
// Closing the file unlocks it.
func (s *Store) hold(ctx context.Context) (*filelock.File, error) {
	if err := os.MkdirAll(s.layers.Path, 0o700); err != nil {
		return nil, fault.Disk(err, "make the image store")
	}
	f, err := filelock.Exclusive(ctx, filepath.Join(s.layers.Path, "lock"))
	return f, fault.Disk(err, "lock the image store")
}
