package shim

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// unpack extracts the tar stream that came with a request into a new directory
// of the home. The work is done in a child process whose only privileges are
// those over files: cmd/sandbox-init, which calls [layer.Child]. A client that
// gives up closes the stream, so that the child reads a tar without its end.
func (k *keeper) unpack(f wire.Frame) error {
	var r wire.Unpack
	if err := f.Decode(&r); err != nil {
		return err
	}
	if len(f.FDs) != 1 || !within(r.Dir, k.home) || filepath.Clean(r.Dir) != r.Dir {
		return fault.New(fault.Engine, "unpack into %q: want one stream and a directory of the home", r.Dir)
	}
	tar := os.NewFile(uintptr(f.FDs[0]), "tar")
	f.FDs[0] = -1 // tar owns the descriptor now
	defer tar.Close()
	if err := layer.Unpack(context.Background(), k.child("unpack"), tar, r.Dir); err != nil {
		return err
	}
	if asUser { // the client may not own the directory
		return layer.MarkNew(r.Dir)
	}
	return nil
}

// pack writes a layer to the pipe that came with a request, for a client who may not read
// all of it and sees other owners than the box. A client that gives up closes the pipe.
func (k *keeper) pack(f wire.Frame) error {
	var r wire.Unpack
	if err := f.Decode(&r); err != nil {
		return err
	}
	if len(f.FDs) != 1 {
		return fault.New(fault.Engine, "pack %q: want one pipe", r.Dir)
	}
	tar := os.NewFile(uintptr(f.FDs[0]), "tar")
	f.FDs[0] = -1 // tar owns the descriptor now
	defer tar.Close()
	fd, err := k.openLayer(r.Dir)
	if err != nil {
		return err
	}
	root := os.NewFile(uintptr(fd), "layer")
	defer root.Close()
	return layer.Pack(context.Background(), root, tar, layer.DefaultLimits)
}

// discardLayer removes the directory of a layer that is not complete or not needed any
// more, for a client who may not.
func (k *keeper) discardLayer(f wire.Frame) error {
	var r wire.Unpack
	if err := f.Decode(&r); err != nil {
		return err
	}
	if filepath.Dir(r.Dir) != k.layers() || !strings.HasPrefix(filepath.Base(r.Dir), layer.Temporary) {
		return fault.New(fault.Engine, "remove %q: want a temporary directory of the home's layers", r.Dir)
	}
	return fault.Disk(os.RemoveAll(r.Dir), "remove a layer")
}

func (k *keeper) layers() string { return filepath.Join(k.home, "layers") }

// flush starts to write the home's layers to disk and returns at once. The shim
// does not end before that is done. All requests that come meanwhile are carried
// out by one more flush.
func (k *keeper) flush() {
	if k.flushes.Add(1) > 1 { // the goroutine that is flushing will see the request
		return
	}
	k.idle.enter()
	go func() {
		defer k.idle.leave()
		for asked := k.flushes.Load(); asked > 0; asked = k.flushes.Add(-asked) {
			if err := layer.Flush(k.layers()); err != nil {
				k.log.Error("write layers to disk", "error", err)
			}
		}
	}()
}
