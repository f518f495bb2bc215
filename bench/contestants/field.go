// Package contestants holds everything that is measured, and what it needs:
// [Ours], the library in this process, and [Service], a daemon of ours; the
// peers [OCI] (runc and crun), [Bwrap] and [Podman]; the root file system and
// the images that all of them run, and the [Lab], a network of their own. A
// [Field] is all of that for one run of the bench; package measures chooses
// from it.
package contestants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sandbox/bench/harness"
)

// Field holds what all measurements share.
type Field struct {
	harness.Pace
	Tools  string // directory of the built programs and peers
	Dir    string // directory of all state of this run; removed at the end
	Rootfs string // the same for everyone
	Peers  Peers
	Ours   *Ours

	// These are nil until they are first needed.
	lab     *Lab
	service *Service
}

// SetUp makes the directory of this run, the root file system, the peers and a home.
func SetUp(ctx context.Context, tools string, p harness.Pace) (*Field, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("needs root: boxes, runc and crun make namespaces and cgroups")
	}
	tools, err := filepath.Abs(tools)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/var/tmp", "sandbox-bench-")
	if err != nil {
		return nil, err
	}
	b := &Field{Pace: p, Tools: tools, Dir: dir, Rootfs: filepath.Join(dir, "rootfs")}
	if err := makeRootfs(b.Rootfs, filepath.Join(tools, "bench")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b.Peers = findPeers(ctx, b)
	b.Ours = openOurs(b, filepath.Join(b.Dir, "home"), 0)
	return b, nil
}

// Close ends and removes all that the run made.
func (b *Field) Close(ctx context.Context) error {
	err := errors.Join(b.service.Close(ctx), b.Ours.Close(ctx), b.Peers.close(ctx), b.lab.close(ctx))
	if err != nil {
		return fmt.Errorf("cleaning up (%s is left): %w", b.Dir, err)
	}
	return os.RemoveAll(b.Dir)
}
