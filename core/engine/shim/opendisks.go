package shim

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandbox/core/engine/record"
	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// answerOpenDisks opens directories in which the files of layers and of a box are, for a
// client that reads them: those on a disk of a size are mounted nowhere else.
func (k *keeper) answerOpenDisks(f wire.Frame) (descriptors, error) {
	var r wire.OpenDisks
	if err := f.Decode(&r); err != nil {
		return nil, err
	}
	if most := wire.MaxFDs - 1; len(r.Layers) > most {
		return nil, fault.New(fault.Engine, "%d layers to open, and the most are %d", len(r.Layers), most)
	}
	var opened descriptors
	for _, dir := range r.Layers {
		fd, err := k.openLayer(dir)
		if err != nil {
			opened.close()
			return nil, err
		}
		opened = append(opened, fd)
	}
	if r.Box == "" {
		return opened, nil
	}
	fd, err := k.openUpper(r.Box)
	switch {
	case errors.Is(err, os.ErrNotExist): // as after a snapshot of a box that was not started since
	case err != nil:
		opened.close()
		return nil, err
	default:
		opened = append(opened, fd)
	}
	return opened, nil
}

func (k *keeper) openLayer(dir string) (int, error) {
	if filepath.Dir(dir) != k.layers() || filepath.Clean(dir) != dir {
		return -1, fault.New(fault.Engine, "%q is not a layer of this home", dir)
	}
	if !layer.IsDisk(dir) {
		fd, err := openFiles(dir)
		return fd, fault.Disk(err, "open a layer")
	}
	return openMounted(func(place string) error { return mountReadOnly(filepath.Join(dir, layer.DiskFile), place) })
}

// openUpper opens the writable layer of a box. Errors: BoxNotFound, Storage, and
// os.ErrNotExist for a box that has none.
func (k *keeper) openUpper(id string) (int, error) {
	b, err := k.lock(id)
	if err != nil {
		return -1, err
	}
	defer b.change.Unlock()
	dir := record.Dir(k.home, id)
	if !exists(filepath.Join(dir, layer.DiskFile)) {
		return openFiles(filepath.Join(dir, upperDir))
	}
	return openMounted(func(place string) error { return mountShared(filepath.Join(dir, layer.DiskFile), place, 0) })
}

// openMounted opens the files on a disk that mount mounts in a place, where nothing is
// left: the descriptor keeps the disk mounted.
func openMounted(mount func(place string) error) (int, error) {
	place, err := os.MkdirTemp(stage, "open-")
	if err != nil {
		return -1, fault.Disk(err, "make a directory to mount a disk in")
	}
	defer func() { _ = os.Remove(place) }()
	if err := mount(place); err != nil {
		return -1, err
	}
	defer func() { _ = unix.Unmount(place, unix.MNT_DETACH) }()
	return openFiles(filepath.Join(place, upperDir))
}

func openFiles(dir string) (int, error) {
	return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
