package measures

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core"
	"sandbox/hostcopy"
)

const (
	copiedSize   = 256 << 20 // bytes of the large file
	copiedFiles  = 10_000
	copiedPiece  = 4 << 10 // bytes of each
	copiedRounds = 10      // at most: a round makes 30,000 files
)

// copies is the state of measureFiles. Everything lies on one file system, where only
// large files are deleted meanwhile.
type copies struct {
	ours *contestants.Ours
	box  *core.Box
	disk harness.Disk
	n    int // copies that were made
}

// measureFiles copies one large file and many small ones with the code of `sandbox cp`,
// beside a tar that unpacks what another one packs. The sources are in memory already,
// and no contestant waits until its copy is on the disk.
func measureFiles(ctx context.Context, b *contestants.Field) (_ []harness.Row, err error) {
	var c copies
	if c.disk, err = harness.NewDisk(b.Dir); err != nil {
		return nil, errors.Join(err, c.disk.Close())
	}
	defer func() { err = errors.Join(err, c.disk.Close()) }()
	c.ours = b.OursAt(filepath.Join(c.disk.Dir, "home"))
	defer func() { err = errors.Join(err, c.ours.Close(context.WithoutCancel(ctx))) }()
	if c.ours.Why != "" {
		return c.ours.Alone("ms", 0, nil), nil
	}
	if c.box, err = c.ours.Create(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.ours.Remove(ctx, c.box)) }()
	pace := harness.Pace{Rounds: min(b.Rounds, copiedRounds), Pause: b.Pause}
	large, err1 := c.rows(ctx, b, pace, copied{name: "256 MiB", files: 1, size: copiedSize, limit: 1.1})
	small, err2 := c.rows(ctx, b, pace, copied{name: "10,000 files", files: copiedFiles, size: copiedPiece, limit: 2})
	return append(large, small...), errors.Join(err1, err2)
}

// copied is what is copied: a directory of so many files of a size.
type copied struct {
	name        string
	files, size int
	limit       float64
	dir         string // on the host
	inside      string // in the box
}

// rows copies a directory of the host into the box, one of the box to the host, and one
// of the host to the host by tar.
func (c *copies) rows(ctx context.Context, b *contestants.Field, pace harness.Pace, d copied) ([]harness.Row, error) {
	d.dir, d.inside = filepath.Join(c.disk.Dir, strconv.Itoa(d.files)), "/"+strconv.Itoa(d.files)
	if err := makeFiles(d.dir, d.files, d.size); err != nil {
		return nil, err
	}
	if _, err := hostcopy.In(ctx, c.ours.Files(c.box), d.dir, d.inside, nil); err != nil {
		return nil, err
	}
	peer, in, out := c.tar(ctx, b, d), d.name+" in", d.name+" out"
	all := pace.Interleave(ctx, c.ours.As(in, c.in(d)), c.ours.As(out, c.out(d)), peer)
	return harness.Rows(harness.Millis, all,
		harness.Bar{Contestant: "ours, " + in, Peer: peer.Name, Percentile: 50, Limit: d.limit},
		harness.Bar{Contestant: "ours, " + out, Peer: peer.Name, Percentile: 50, Limit: d.limit}), nil
}

// in copies into the box, to where nothing is yet.
func (c *copies) in(d copied) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		c.n++
		to := path.Join("/", "in-"+strconv.Itoa(c.n))
		if err := c.disk.Sync(); err != nil {
			return 0, err
		}
		start := time.Now()
		_, err := hostcopy.In(ctx, c.ours.Files(c.box), d.dir, to, nil)
		took := time.Since(start)
		if d.files == 1 {
			_, cleared := c.ours.Exec(ctx, c.box, "/bin/busybox", "sh", "-c", "busybox rm -r "+to+" && echo removed")
			err = errors.Join(err, cleared)
		}
		return took, err
	}
}

// out copies from the box, to where nothing is yet.
func (c *copies) out(d copied) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		return c.fresh(d, func(to string) (time.Duration, error) {
			start := time.Now()
			_, err := hostcopy.Out(ctx, c.ours.Files(c.box), d.inside, to, nil)
			return time.Since(start), err
		})
	}
}

// tar is the peer: two tars and the pipe between them.
func (c *copies) tar(ctx context.Context, b *contestants.Field, d copied) harness.Contestant {
	tar, version, why := contestants.FindTool(ctx, b, "tar")
	return harness.Contestant{Name: "tar | tar, " + d.name, Version: version, Why: why, Isolation: "none", Run: func(ctx context.Context) (time.Duration, error) {
		return c.fresh(d, func(to string) (time.Duration, error) {
			const script = `set -o pipefail; "$0" -C "$1" -cf - . | "$0" -C "$2" -xf -`
			if err := os.Mkdir(to, 0o700); err != nil {
				return 0, err
			}
			t, err := harness.Command{Args: []string{"bash", "-c", script, tar, d.dir, to}}.Run(ctx)
			return t.End, err
		})
	}}
}

// fresh calls run with the name of a directory that is not there yet, after all pending
// data were written to the disk. It wants all files there afterwards.
func (c *copies) fresh(d copied, run func(to string) (time.Duration, error)) (time.Duration, error) {
	c.n++
	to := filepath.Join(c.disk.Dir, "out-"+strconv.Itoa(c.n))
	if err := c.disk.Sync(); err != nil {
		return 0, err
	}
	took, err := run(to)
	if err != nil {
		return 0, err
	}
	made, err := os.ReadDir(to)
	err = errors.Join(err, harness.Whole(int64(len(made)), int64(d.files)))
	if d.files == 1 {
		err = errors.Join(err, os.RemoveAll(to))
	}
	return took, err
}

// makeFiles makes a directory of files, whose bytes are random: no contestant may find
// holes in them.
func makeFiles(dir string, files, size int) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // it never fails
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
