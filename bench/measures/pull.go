package measures

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/stream"

	"sandbox/bench/contestants"
	"sandbox/bench/harness"
	"sandbox/core/local"
	"sandbox/test/registry"
)

const (
	pullLayers = 8
	pullFiles  = 16      // in each layer
	pullFile   = 8 << 20 // bytes, in turn random ones and ones that compress to half
)

const mostPullMemory = 64 << 20

// measurePull pulls a large image with the command line, in a process of its
// own, and watches the memory of that process, of the shim and of the shim's
// children.
func measurePull(ctx context.Context, b *contestants.Field) ([]harness.Row, error) {
	return b.Ours.Alone("MiB", 1, func(r *harness.Row) error {
		dir := filepath.Join(b.Dir, "registry")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		reg, err := registry.Serve(dir, registry.Options{})
		if err != nil {
			return err
		}
		defer reg.Close()
		img, err := largeImage()
		if err != nil {
			return err
		}
		if err := reg.Write(ctx, "large:v1", img); err != nil {
			return err
		}
		peak, err := pulls(ctx, b, reg.Host+"/large:v1")
		r.Weighs(peak, mostPullMemory)
		return err
	}), nil
}

// pulls pulls ref into a new home and returns the peak of memory.
func pulls(ctx context.Context, b *contestants.Field, ref string) (peak int64, err error) {
	home := filepath.Join(b.Dir, "pull")
	host, err := local.Open(local.Config{Home: home, Beside: b.Tools})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, host.Close(context.WithoutCancel(ctx))) }()
	if err := host.Engine.Flush(ctx); err != nil { // starts the shim
		return 0, err
	}
	shim, err := contestants.ShimOf(home)
	if err != nil {
		return 0, err
	}
	idle, err := harness.StatusBytes(shim, "VmRSS:")
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.Tools, "sandbox"), "images", "pull", ref)
	cmd.Env = append(os.Environ(), "SANDBOX_HOME="+home, "SANDBOX_HELPER_DIR="+b.Tools)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak, err = watch(ended, cmd.Process.Pid, shim)
	if err != nil {
		err = fmt.Errorf("pull: %w: %s", err, said.String())
	}
	return peak - idle, err
}

// watch looks at the processes until ended reports the end, and returns the
// peak of their memory together. It adds up the peak that each process has had
// so far, and counts children only while they live. As the processes need not
// peak at the same moment, the sum may be too high, but never too low.
func watch(ended <-chan error, pull, shim int) (peak int64, err error) {
	often := time.NewTicker(5 * time.Millisecond)
	defer often.Stop()
	for {
		sum := int64(0)
		for _, pid := range append(harness.ChildrenOf(shim), pull, shim) {
			bytes, _ := harness.StatusBytes(pid, "VmHWM:") // an error means that the process has ended
			sum += bytes
		}
		peak = max(peak, sum)
		select {
		case err := <-ended:
			return peak, err
		case <-often.C:
		}
	}
}

// largeImage returns an image of random files, which are made while it is read.
func largeImage() (v1.Image, error) {
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers"}})
	for i := range pullLayers {
		if err != nil {
			return nil, err
		}
		r, w := io.Pipe()
		go func() { _ = w.CloseWithError(writeLayer(w, uint64(i))) }()
		img, err = mutate.AppendLayers(img, stream.NewLayer(r, stream.WithCompressionLevel(gzip.BestSpeed)))
	}
	return img, err
}

func writeLayer(w io.Writer, seed uint64) error {
	tw := tar.NewWriter(w)
	random := rand.NewChaCha8([32]byte{byte(seed)})
	for i := range pullFiles {
		if err := tw.WriteHeader(&tar.Header{Name: fmt.Sprintf("layer%d/file%d", seed, i), Mode: 0o644, Size: pullFile}); err != nil {
			return err
		}
		var content io.Reader = random
		if i%2 == 1 {
			content = letters{random}
		}
		if _, err := io.CopyN(tw, content, pullFile); err != nil {
			return err
		}
	}
	return tw.Close()
}

// letters maps random bytes to 16 different ones, so that gzip can compress
// them.
type letters struct{ io.Reader }

func (l letters) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	for i := range p[:n] {
		p[i] = 'a' + p[i]&15
	}
	return n, err
}
