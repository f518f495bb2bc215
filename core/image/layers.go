package image

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/fault"
	"sandbox/core/filelock"
	"sandbox/core/image/layer"
	"sandbox/core/store"
)

const gone = layer.Temporary + "gone-" // collected layers that are to be deleted

// layerInfo is the record of a layer.
type layerInfo struct {
	Size     int64 `json:"size"`               // of the plain tar; of a snapshot's layer, what it occupies, 0 if that is not known
	Snapshot bool  `json:"snapshot,omitempty"` // it was made of the disk of a box, and its key is no digest
	// Packed is what the layer was when it last left the store.
	Packed map[api.Compression]packedLayer `json:"packed,omitempty"`
}

// claim is a directory in which one layer is being made. A lock on it keeps
// others out.
type claim struct {
	dir     string
	lock    *filelock.File
	discard func(dir string) error
}

// claim waits until nobody else makes the layer that key names, and then locks
// its directory.
func (s *Store) claim(ctx context.Context, key string) (*claim, error) {
	if key == "" {
		key = rand.Text()
	}
	dir := filepath.Join(s.layers.Path, layer.Temporary+key)
	f, err := filelock.Exclusive(ctx, dir+".lock")
	if err != nil {
		return nil, fault.Disk(err, "lock the image store")
	}
	c := &claim{dir, f, s.c.Discard}
	if err := c.discard(dir); err != nil { // left by a process that died
		c.release()
		return nil, fault.Disk(err, "remove an incomplete layer")
	}
	return c, nil
}

// release removes the directory if it was not published, and unlocks it.
func (c *claim) release() {
	_ = c.discard(c.dir)
	_ = os.Remove(c.lock.Name())
	_ = c.lock.Close()
}

// ensure unpacks the layer b into the store unless it is there already. It
// returns the digest and size of its plain tar.
func (s *Store) ensure(ctx context.Context, b blob, progress func(stage api.ImageStage, done int64)) (v1.Hash, int64, error) {
	if info, ok := s.have(b.diffID); ok {
		progress(api.LayerDone, b.size)
		return b.diffID, info.Size, nil
	}
	c, err := s.claim(ctx, b.diffID.Hex)
	if err != nil {
		return v1.Hash{}, 0, err
	}
	defer c.release()
	if info, ok := s.have(b.diffID); ok { // the holder of the claim before made it
		progress(api.LayerDone, b.size)
		return b.diffID, info.Size, nil
	}
	diffID, size, err := s.unpack(ctx, b, c.dir, progress)
	if err == nil {
		err = s.publish(ctx, diffID, layerInfo{Size: size}, c.dir)
	}
	if err == nil {
		progress(api.LayerDone, b.size)
	}
	return diffID, size, err
}

func (s *Store) have(diffID v1.Hash) (layerInfo, bool) {
	if diffID.Hex == "" {
		return layerInfo{}, false
	}
	info, err := s.layers.Get(diffID.Hex)
	return info, err == nil && layer.Whole(s.layer(diffID.Hex))
}

// unpack unpacks b into the new directory dir and verifies its digests.
func (s *Store) unpack(ctx context.Context, b blob, dir string, progress func(stage api.ImageStage, done int64)) (v1.Hash, int64, error) {
	source, err := b.open(ctx, func(done int64) { progress(api.LayerFetching, done) })
	if err != nil {
		return v1.Hash{}, 0, err
	}
	defer source.Close()
	st, err := newStream(ctx, source, b.digest, func(done int64) { progress(api.LayerUnpacking, done) })
	if err != nil {
		return v1.Hash{}, 0, err
	}
	defer st.close()
	st.room.check = s.c.Room
	if err := st.hasten(); err != nil {
		return v1.Hash{}, 0, err
	}
	if err := s.c.Unpacker.Unpack(ctx, st, dir); err != nil {
		return v1.Hash{}, 0, st.cause(err)
	}
	diffID, err := st.verify(b)
	return diffID, st.size, err
}

// publish gives a finished layer its final name. If its digest was not known
// beforehand, another process may have published the same layer first.
func (s *Store) publish(ctx context.Context, diffID v1.Hash, info layerInfo, dir string) error {
	if !layer.Whole(dir) { // else who unpacked it has marked it
		if err := layer.MarkNew(dir); err != nil {
			return err
		}
	}
	held, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	err = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, s.layer(diffID.Hex), unix.RENAME_NOREPLACE)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fault.Disk(err, "store a layer")
	}
	return s.layers.Put(diffID.Hex, info, false)
}

// sweep removes the unfinished layers of processes that died. Errors: Storage.
func (s *Store) sweep(ctx context.Context) error {
	held, err := s.hold(ctx) // records are written and layers renamed only while it is held
	if err != nil {
		return err
	}
	defer held.Close()
	if err := errors.Join(s.images.Sweep(), s.layers.Sweep(), s.steps.Sweep(), layer.Sweep(s.layers.Path)); err != nil {
		return err
	}
	left, err := os.ReadDir(s.layers.Path)
	if err != nil {
		return fault.Disk(err, "sweep the image store")
	}
	for _, e := range left {
		key, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".lock"), layer.Temporary)
		if !ok {
			continue
		}
		dir := filepath.Join(s.layers.Path, layer.Temporary+key)
		f, err := filelock.Try(dir + ".lock")
		if errors.Is(err, filelock.ErrHeld) { // another process is making it now
			continue
		}
		if err != nil {
			return fault.Disk(err, "sweep the image store")
		}
		(&claim{dir, f, s.c.Discard}).release()
	}
	_, err = s.dropPartials(keepPartial)
	return err
}

// keepPartial is how long a partly downloaded layer is kept, so that a later
// download can resume it.
const keepPartial = 24 * time.Hour

// dropPartials removes the partly downloaded layers that were last written to
// longer than age ago, and returns their total size.
func (s *Store) dropPartials(age time.Duration) (int64, error) {
	left, err := os.ReadDir(s.blobs())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fault.Disk(err, "sweep the image store")
	}
	freed := int64(0)
	for _, e := range left {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < age {
			continue
		}
		f, err := filelock.Try(filepath.Join(s.blobs(), e.Name()))
		if errors.Is(err, filelock.ErrHeld) { // another process is downloading it now
			continue
		}
		if err != nil {
			return freed, fault.Disk(err, "sweep the image store")
		}
		_ = os.Remove(f.Name())
		_ = f.Close()
		freed += info.Size()
	}
	return freed, nil
}

// adding prevents layers from being collected until the file is closed. An
// image that is being made needs them, but no record says so yet; one that
// leaves the store needs them even if it is removed meanwhile.
func (s *Store) adding(ctx context.Context) (*filelock.File, error) {
	if err := os.MkdirAll(s.layers.Path, 0o700); err != nil {
		return nil, fault.Disk(err, "make the image store")
	}
	f, err := filelock.Shared(ctx, s.addingLock()) // collect holds this lock only for an instant
	return f, fault.Disk(err, "lock the image store")
}

func (s *Store) addingLock() string { return filepath.Join(s.layers.Path, "adding") }

// collect renames the layers that no image and no box needs, and returns their
// directories, which the caller deletes. While an image is being made it
// collects none. The caller must hold the store.
//
// A box may start meanwhile: its record is written first, its mounts follow. So
// a layer is renamed first, which makes mounts that are still to come fail, and
// it is renamed back if a record has appeared that needs it.
func (s *Store) collect() ([]string, error) {
	if s.c.InUse == nil {
		return nil, nil
	}
	alone, err := filelock.Try(s.addingLock())
	if errors.Is(err, filelock.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Disk(err, "lock the image store")
	}
	defer alone.Close()
	orphans, err := s.orphans()
	if err != nil {
		return nil, err
	}
	var taken []string
	for _, dir := range orphans {
		away := filepath.Join(s.layers.Path, gone+filepath.Base(dir))
		if err = os.Rename(dir, away); err != nil {
			err = fault.Disk(err, "delete a layer")
			break
		}
		taken = append(taken, away)
	}
	kept, backErr := s.restore(taken)
	return kept, cmp.Or(err, backErr)
}

// restore renames the layers back that boxes have begun to use, and returns the
// rest.
func (s *Store) restore(taken []string) ([]string, error) {
	used, err := s.usedLayers()
	kept := taken[:0:0]
	for _, away := range taken {
		dir := filepath.Join(s.layers.Path, strings.TrimPrefix(filepath.Base(away), gone))
		if err == nil && !slices.Contains(used, dir) {
			kept = append(kept, away)
			err = s.layers.Delete(filepath.Base(dir))
			continue
		}
		if backErr := os.Rename(away, dir); err == nil {
			err = fault.Disk(backErr, "store a layer")
		}
	}
	return kept, err
}

// directories returns those of layers that an image names.
func (s *Store) directories(names []string) (dirs []string) {
	for _, name := range names {
		dirs = append(dirs, s.layer(name))
	}
	return dirs
}

// orphans returns the directories of the layers that nobody needs.
func (s *Store) orphans() ([]string, error) {
	needed, err := s.usedLayers()
	if err != nil {
		return nil, err
	}
	images, damaged, err := s.images.List()
	if err = errors.Join(err, store.Errors(damaged)); err != nil {
		return nil, err // a damaged record may need any layer
	}
	for _, info := range images {
		dirs := s.directories(info.Layers)
		needed = append(append(needed, dirs...), layer.Squashed(dirs, 0)...)
	}
	steps, _, err := s.steps.List() // a damaged record is a step that has to be carried out again
	if err != nil {
		return nil, err
	}
	for _, step := range steps {
		needed = append(needed, s.directories(step.Layers)...)
	}
	all, err := os.ReadDir(s.layers.Path)
	if err != nil {
		return nil, fault.Disk(err, "list layers")
	}
	all = slices.DeleteFunc(all, func(e fs.DirEntry) bool {
		return !e.IsDir() || strings.HasPrefix(e.Name(), layer.Temporary) || slices.Contains(needed, s.layer(e.Name()))
	})
	var dirs []string
	for _, e := range all {
		dirs = append(dirs, s.layer(e.Name()))
	}
	return dirs, nil
}
