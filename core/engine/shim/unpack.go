package shim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sandbox/core/engine/wire"
	"sandbox/core/fault"
	"sandbox/core/image/layer"
)

// unpack extracts the tar stream that came with a request into a new directory
// of the home, in a child with no rights but over files: cmd/sandbox-init hands
// it to [layer.Child]. A client that gives up closes the stream, which is a tar
// without end.
func (k *keeper) unpack(f wire.Frame) error {
	var r wire.Unpack
	if err := f.Decode(&r); err != nil {
		return err
	}
	if len(f.FDs) != 1 || !within(r.Dir, k.home) || filepath.Clean(r.Dir) != r.Dir {
		return fault.New(fault.Engine, "unpack into %q: want one stream and a directory of the home", r.Dir)
	}
	tar := os.NewFile(uintptr(f.FDs[0]), "tar")
	f.FDs[0] = -1 // tar's now
	defer tar.Close()
	// Not /proc/self: a child has other files under these numbers when it execs.
	program := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), k.launcher.program.Fd())
	return layer.Unpack(context.Background(), []string{program, "unpack"}, tar, r.Dir)
}

func (k *keeper) layers() string { return filepath.Join(k.home, "layers") }

// flush writes the home's layers to disk, while the shim goes on. It stays
// until that is done. What it was asked for meanwhile is done in one.
func (k *keeper) flush() {
	if k.flushes.Add(1) > 1 { // who is at it will see it
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
