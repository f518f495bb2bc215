package measures

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core/image"
	"sandbox/core/local"
)

const (
	exportRounds = 30
	exportSize   = 500 << 20 // bytes of files, at least
)

// exporting is the state of measureExport.
type exporting struct {
	unpacking
	tree string      // the files
	host *local.Host // has them as the image bench
}

// measureExport exports an image and imports it again beside tar, which does
// nothing but pack and unpack the same files: it computes no digests, and checks
// no names.
func measureExport(ctx context.Context, b *contestants.Field) (_ []harness.Row, err error) {
	e := &exporting{unpacking: unpacking{b: b, layer: filepath.Join(b.Tools, "bench", "layer.tar.gz")}}
	if e.disk, err = harness.NewDisk(b.Dir); err != nil {
		return nil, errors.Join(err, e.disk.Close())
	}
	defer func() { err = errors.Join(err, e.disk.Close()) }()
	e.tree = filepath.Join(e.disk.Dir, "tree")
	if err := e.grow(ctx); err != nil {
		return nil, err
	}
	if e.host, err = local.Open(local.Config{Home: filepath.Join(e.disk.Dir, "home"), Beside: b.Tools}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.host.Close(context.WithoutCancel(ctx))) }()
	if _, err := e.host.Images.Import(ctx, "bench", e.tree, nil); err != nil {
		return nil, err
	}
	all := harness.Pace{Rounds: exportRounds, Pause: b.Pause}.Interleave(ctx, b.Ours.Contestant(e.onNewDisk(e.thereAndBack)), e.tar())
	return harness.Rows(harness.Millis, all, harness.Bar{Contestant: "ours", Peer: "tar --zstd", Percentile: 50, Limit: 1.3}), nil
}

// grow unpacks the layer into the tree as often as it takes, without devices.
func (e *exporting) grow(ctx context.Context) error {
	for size, n := int64(0), 0; size < exportSize; n++ {
		dir := filepath.Join(e.tree, strconv.Itoa(n))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if _, err := (harness.Command{Args: []string{"tar", "-xzf", e.layer, "-C", dir, "--exclude=./dev/*"}}).Run(ctx); err != nil {
			return err
		}
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				size += info.Size()
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// onNewDisk has each run write to a disk of its own: the rounds together write more than one
// disk holds, and nothing may be deleted meanwhile.
func (e *exporting) onNewDisk(run func(ctx context.Context, dir string) (time.Duration, error)) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (took time.Duration, err error) {
		e.n++
		dir := filepath.Join(e.b.Dir, "export"+strconv.Itoa(e.n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return 0, err
		}
		disk, err := harness.NewDisk(dir)
		defer func() { err = errors.Join(err, disk.Close(), os.RemoveAll(dir)) }()
		if err != nil {
			return 0, err
		}
		if err := errors.Join(e.disk.Sync(), disk.Sync()); err != nil {
			return 0, err
		}
		return run(ctx, disk.Dir)
	}
}

// thereAndBack exports the image and imports it into a new home, whose shim is
// already running. It fails if what was imported gives another archive.
func (e *exporting) thereAndBack(ctx context.Context, dir string) (took time.Duration, err error) {
	host, err := local.Open(local.Config{Home: filepath.Join(dir, "home"), Beside: e.b.Tools})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, host.Close(context.WithoutCancel(ctx))) }()
	if err := host.Engine.Flush(ctx); err != nil {
		return 0, err
	}
	archive := filepath.Join(dir, "archive")
	sum := sha256.New()
	start := time.Now()
	if err := exportTo(ctx, e.host, archive); err != nil {
		return 0, err
	}
	if _, err := host.Images.Import(ctx, "bench", archive, nil); err != nil {
		return 0, err
	}
	took = time.Since(start)
	if err := host.Images.Export(ctx, "bench", sum, image.ExportOptions{}); err != nil {
		return 0, err
	}
	return took, sameDigest(archive, sum.Sum(nil))
}

func exportTo(ctx context.Context, host *local.Host, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(host.Images.Export(ctx, "bench", f, image.ExportOptions{}), f.Close())
}

// sameDigest compares the digest of a file.
func sameDigest(path string, want []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := sum.Sum(nil); string(got) != string(want) {
		return fmt.Errorf("the archive has the digest %x, and that of the imported image %x", got, want)
	}
	return nil
}

// tar packs the files and unpacks them again.
func (e *exporting) tar() harness.Contestant {
	path, version, why := contestants.FindTool(context.Background(), e.b, "tar")
	return harness.Contestant{Name: "tar --zstd", Version: version, Why: why, Isolation: "none", Run: e.onNewDisk(func(ctx context.Context, dir string) (time.Duration, error) {
		archive := filepath.Join(dir, "archive")
		there, err := harness.Command{Args: []string{path, "--zstd", "-cf", archive, "-C", e.tree, "."}}.Run(ctx)
		if err != nil {
			return 0, err
		}
		to := filepath.Join(dir, "tree")
		if err := os.Mkdir(to, 0o700); err != nil {
			return 0, err
		}
		back, err := harness.Command{Args: []string{path, "--zstd", "-xf", archive, "-C", to}}.Run(ctx)
		return there.End + back.End, err
	})}
}
