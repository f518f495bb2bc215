package measures

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core/local"
)

const unpackRounds = 15

// unpacking is the state of measureUnpack. All contestants write to new
// directories of one file system, where nothing is deleted meanwhile.
type unpacking struct {
	b       *contestants.Field
	disk    harness.Disk
	layer   string // a gzipped tar
	archive string // of an image of that layer, for podman
	n       int    // directories that were made
}

// measureUnpack imports a layer beside tar, which does nothing but unpack it:
// it computes no digest, checks no names, sets no attributes, and knows one
// user only.
func measureUnpack(ctx context.Context, b *contestants.Field) (_ []harness.Row, err error) {
	u := &unpacking{b: b, layer: filepath.Join(b.Tools, "bench", "layer.tar.gz"), archive: filepath.Join(b.Dir, "archive.tar")}
	if u.disk, err = harness.NewDisk(b.Dir); err != nil {
		return nil, errors.Join(err, u.disk.Close())
	}
	defer func() { err = errors.Join(err, os.RemoveAll(u.archive), u.disk.Close()) }()
	all := harness.Pace{Rounds: unpackRounds, Pause: b.Pause}.Interleave(ctx, b.Ours.Contestant(u.imports), u.tar(), u.podman(ctx))
	return harness.Rows(harness.Millis, all, harness.Bar{Contestant: "ours", Peer: "tar -xzf", Percentile: 50, Limit: 0.5}), nil
}

// newDir returns a new directory of the disk, after all pending data were
// written to the disk.
func (u *unpacking) newDir() (string, error) {
	u.n++
	dir := filepath.Join(u.disk.Dir, strconv.Itoa(u.n))
	return dir, errors.Join(os.Mkdir(dir, 0o700), u.disk.Sync())
}

// imports imports the layer into a new home, whose shim is already running.
func (u *unpacking) imports(ctx context.Context) (took time.Duration, err error) {
	home, err := u.newDir()
	if err != nil {
		return 0, err
	}
	host, err := local.Open(local.Config{Home: home, Beside: u.b.Tools})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, host.Close(context.WithoutCancel(ctx))) }()
	if err := host.Engine.Flush(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	_, err = host.Images.Import(ctx, "bench", u.layer, nil)
	return time.Since(start), err
}

func (u *unpacking) tar() harness.Contestant {
	path, version, why := contestants.FindTool(context.Background(), u.b, "tar")
	return harness.Contestant{Name: "tar -xzf", Version: version, Why: why, Isolation: "none", Run: func(ctx context.Context) (time.Duration, error) {
		dir, err := u.newDir()
		if err != nil {
			return 0, err
		}
		t, err := harness.Command{Args: []string{path, "-xzf", u.layer, "-C", dir}}.Run(ctx)
		return t.End, err
	}}
}

// podman loads an archive of an image of the layer.
func (u *unpacking) podman(ctx context.Context) harness.Contestant {
	path, version, why := contestants.FindTool(ctx, u.b, "podman")
	if why == "" {
		if err := u.archiveLayer(); err != nil {
			why = err.Error()
		}
	}
	return harness.Contestant{Name: "podman load", Version: version, Why: why, Isolation: "chroot", Run: func(ctx context.Context) (time.Duration, error) {
		dir, err := u.newDir()
		if err != nil {
			return 0, err
		}
		t, err := harness.Command{Args: []string{
			path, "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--tmpdir", filepath.Join(dir, "tmp"),
			"--storage-driver", "overlay", "load", "-q", "-i", u.archive,
		}}.Run(ctx)
		return t.End, err
	}}
}

func (u *unpacking) archiveLayer() error {
	layer, err := tarball.LayerFromFile(u.layer)
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(u.archive, name.MustParseReference("bench:latest"), img)
}
