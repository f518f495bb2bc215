package image

import (
	"cmp"
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// Pruned is what [Store.Prune] has removed.
type Pruned struct {
	Images []string `json:"images"` // the names of the images
	Steps  int      `json:"steps"`  // of builds: they are carried out again when they are next needed
	Layers int      `json:"layers"`
	Bytes  int64    `json:"bytes"` // the sizes of layers as plain tars, what those of snapshots occupied, and of partly downloaded layers
}

// Prune removes what nobody needs: steps of builds whose layers no image has, layers
// without an image or a box, and partly downloaded layers; if unused is set, also the
// images, snapshots among them, that no box runs on. Layers are kept while an image is
// being made. Errors: Storage, and what ended ctx.
func (s *Store) Prune(ctx context.Context, unused bool) (Pruned, error) {
	done := Pruned{Images: []string{}}
	if err := s.sweep(ctx); err != nil {
		return done, err
	}
	held, err := s.hold(ctx)
	if err != nil {
		return done, err
	}
	defer held.Close()
	if unused {
		if done.Images, err = s.forgetUnused(); err != nil {
			return done, err
		}
	}
	if done.Steps, err = s.forgetSteps(); err != nil {
		return done, err
	}
	if done.Bytes, err = s.dropPartials(0); err != nil {
		return done, err
	}
	sizes, err := s.sizes()
	if err != nil {
		return done, err
	}
	garbage, err := s.collect()
	for _, dir := range garbage {
		size := sizes[filepath.Base(dir)]
		if size == 0 { // of a disk of a box that nobody has asked for
			size = layer.DiskUse(dir, math.MaxInt).Bytes
		}
		done.Layers++
		done.Bytes += size
	}
	return done, cmp.Or(s.discard(garbage), err)
}

// sizes returns the sizes of all layers. Its keys are the directory names that
// the layers have once they are collected.
func (s *Store) sizes() (map[string]int64, error) {
	all, err := os.ReadDir(s.layers.Path)
	sizes := map[string]int64{}
	for _, e := range all {
		hex := e.Name()
		if info, err := s.layers.Get(hex); err == nil {
			sizes[gone+hex] = info.Size
		}
	}
	return sizes, fault.Disk(err, "list layers")
}

// forgetUnused forgets the images that no box runs on, and returns their names.
func (s *Store) forgetUnused() ([]string, error) {
	names := []string{}
	if s.c.InUse == nil {
		return names, nil
	}
	uses, err := s.c.InUse()
	if err != nil {
		return names, err
	}
	images, err := s.List()
	if err != nil {
		return names, err
	}
	used := layersOf(uses)
	for _, info := range images {
		if s.stoodOn(info, used) || slices.ContainsFunc(uses, func(u core.ImageUse) bool { return madeFrom(u, info) }) {
			continue
		}
		if err := s.images.Delete(key(info.Name)); err != nil {
			return names, err
		}
		names = append(names, info.Name)
	}
	return names, nil
}

// stoodOn reports whether all layers of an image are in use. A box that was made from a
// snapshot need not use them, since they may have been merged for it.
func (s *Store) stoodOn(info Info, used []string) bool {
	return !slices.ContainsFunc(info.Layers, func(digest string) bool { return !slices.Contains(used, s.layer(digest)) })
}

// Aliases returns the configured short names and the references that they stand
// for.
func (s *Store) Aliases() map[string]string { return maps.Clone(s.c.Sources.Aliases) }

// discard deletes the directories of collected layers.
func (s *Store) discard(dirs []string) error {
	var failed error
	for _, dir := range dirs {
		failed = cmp.Or(failed, fault.Disk(s.c.Discard(dir), "delete a layer"))
	}
	return failed
}
