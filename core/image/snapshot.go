package image

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"sandbox/api"
	"sandbox/core"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// The beginnings of the names that layers have in an image: the digest of the plain tar,
// or, of a layer that was made of the disk of a box and was never a tar, a random key.
const (
	digestPrefix   = "sha256:"
	snapshotPrefix = "snapshot:"
)

// keyDigits is how many digits of the key name a snapshot that was given no name.
const keyDigits = 12

// Snapshot adds an image whose topmost layer take makes; see [core.Images].
func (s *Store) Snapshot(ctx context.Context, r core.SnapshotRequest, take func(layer string) (core.Image, error)) (Info, error) {
	key, err := layerKey()
	if err != nil {
		return Info{}, err
	}
	if r.Name == "" {
		r.Name = snapshotPrefix + key[:keyDigits]
	}
	full, err := normal(r.Name)
	if err != nil {
		return Info{}, err
	}
	if err := s.free(full); err != nil { // before the box stands still for nothing
		return Info{}, err
	}
	keep, err := s.adding(ctx)
	if err != nil {
		return Info{}, err
	}
	defer keep.Close()
	img, err := take(key)
	if err != nil {
		return Info{}, err
	}
	info := s.describeSnapshot(full, r.Box, img)
	if info.ID, err = identifySnapshot(info); err != nil {
		return Info{}, err
	}
	return info, s.recordSnapshot(context.WithoutCancel(ctx), info)
}

func layerKey() (string, error) {
	var key [32]byte
	_, err := rand.Read(key[:])
	return hex.EncodeToString(key[:]), fault.Wrap(fault.Internal, err, "make the key of a layer")
}

// free refuses a name that an image has.
func (s *Store) free(full string) error {
	_, err := s.images.Get(key(full))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fault.New(fault.AlreadyExists, "an image named %s exists", full)
}

// describeSnapshot returns the record of a snapshot. What the box was not given of its
// image, such as its entrypoint, is in the image's own record, if that is still there.
func (s *Store) describeSnapshot(full, box string, img core.Image) Info {
	info := Info{Architecture: runtime.GOARCH}
	if below, err := s.images.Get(key(img.Ref)); err == nil && below.ID == img.ID {
		info = below
	}
	info.Name, info.Digest, info.Parent, info.Box = full, "", img.ID, box
	info.Env, info.WorkingDir, info.User, info.CreatedAt = img.Env, img.WorkingDir, img.User, time.Now().UTC()
	info.HealthCheck, info.StopSignal = img.HealthCheck, img.StopSignal
	if len(info.Entrypoint)+len(info.Cmd) == 0 {
		info.Cmd = img.Command
	}
	info.Layers = nil
	for _, dir := range img.Layers {
		info.Layers = append(info.Layers, s.layerName(filepath.Base(dir)))
	}
	if earlier := s.taken(box, img.Layers[:len(img.Layers)-1]); earlier != "" {
		info.Parent = earlier
	}
	return info
}

// taken returns the id of the snapshot of a box that consists of the layers in these
// directories, or "". Some of them may have been merged since.
func (s *Store) taken(box string, layers []string) string {
	all, _, err := s.images.List()
	if err != nil {
		return "" // it is told by whatever needs the list
	}
	for _, info := range all {
		if info.Box != box {
			continue
		}
		dirs := s.directories(info.Layers)
		if slices.Equal(dirs, layers) || slices.Equal(layer.Squashed(dirs, layer.Common(dirs, layers)), layers) {
			return info.ID
		}
	}
	return ""
}

// layerName returns the name that a layer has in an image.
func (s *Store) layerName(key string) string {
	if info, err := s.layers.Get(key); err == nil && !info.Snapshot {
		return digestPrefix + key
	}
	return snapshotPrefix + key
}

// identifySnapshot returns the id of a snapshot: the digest of its record without the id.
func identifySnapshot(info Info) (string, error) {
	info.ID, info.Name = "", ""
	data, err := json.Marshal(info)
	return digestOf(data).String(), fault.Wrap(fault.Internal, err, "encode the record of a snapshot")
}

// recordSnapshot writes the record of a snapshot. Another image may have got the name since
// it was free.
func (s *Store) recordSnapshot(ctx context.Context, info Info) error {
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	for _, dir := range s.directories(info.Layers) { // one that others were merged into has no record yet
		if _, err := s.layers.Get(filepath.Base(dir)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := s.layers.Put(filepath.Base(dir), layerInfo{Snapshot: true}, false); err != nil {
			return err
		}
	}
	if err := s.free(info.Name); err != nil {
		return err
	}
	return s.images.Put(key(info.Name), info, true)
}

// Snapshots returns all images that are snapshots; see [core.Images].
func (s *Store) Snapshots(context.Context) ([]api.SnapshotNode, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	var uses []core.ImageUse
	if s.c.InUse != nil {
		if uses, err = s.c.InUse(); err != nil {
			return nil, err
		}
	}
	nodes := []api.SnapshotNode{}
	for _, info := range all {
		if info.Box == "" || len(info.Layers) == 0 {
			continue
		}
		top := info.Layers[len(info.Layers)-1]
		node := api.SnapshotNode{Image: info, AddedBytes: s.added(top), Boxes: []string{}}
		for _, u := range uses {
			if slices.Contains(u.Image.Layers, s.layer(top)) || madeFrom(u, info) { // whose layers may have been merged
				node.Boxes = append(node.Boxes, u.Box)
			}
		}
		slices.Sort(node.Boxes)
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// added returns what a layer occupies on the disk, in bytes. It is measured once, since a
// layer never changes.
func (s *Store) added(name string) int64 {
	key := filepath.Base(s.layer(name))
	info, err := s.layers.Get(key)
	if err == nil && info.Size == 0 {
		info.Size = layer.DiskUse(s.layer(name), math.MaxInt).Bytes
		_ = s.layers.Put(key, info, false) // it is measured again otherwise
	}
	return info.Size
}

// Stack returns an image and the directories of its layers; see [core.Images].
func (s *Store) Stack(ref string) (Info, []string, error) {
	info, err := s.Inspect(ref)
	if err != nil {
		return Info{}, nil, err
	}
	dirs, err := s.stack(info)
	return info, dirs, err
}
