package image_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/image"
	"sandbox/test/registry"
)

// podman is Debian's, with a storage of its own.
type podman struct {
	t   *testing.T
	dir string
}

func newPodman(t *testing.T) podman {
	t.Helper()
	p := podman{t, t.TempDir()}
	t.Cleanup(func() {
		for _, pattern := range []string{"libpod_parent/*", "libpod_parent"} {
			left, _ := filepath.Glob("/sys/fs/cgroup/*/" + pattern)
			for _, dir := range left {
				_ = os.Remove(dir) // fails if another podman uses it, which is fine
			}
		}
	})
	return p
}

// do runs podman and returns what it prints. It works in whatever cgroups and file
// systems the host has, which is why its runtime is runc and its driver vfs.
func (p podman) do(args ...string) string {
	p.t.Helper()
	at := func(name string) string { return filepath.Join(p.dir, name) }
	args = append([]string{
		"--root", at("root"), "--runroot", at("run"), "--tmpdir", at("tmp"), "--storage-driver", "vfs",
		"--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", "runc",
	}, args...)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(p.t.Context(), "podman", args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("podman (apt-get install podman runc): %v: %s", err, errs.String())
	}
	return out.String()
}

// TestPodmanRunsAnExport has podman load an image with a layer that a box has made,
// with each compression, and run it.
func TestPodmanRunsAnExport(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	if err := tarball.Write(name.MustParseReference("busybox"), registry.Busybox(t), &archive); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.imported(t, "team/box:1", source(t, archive.Bytes()))
	f.boxLayer(t, "team/box:1", 5<<16)
	top := filepath.Join(f.home, "layers", "5eed")
	if err := errors.Join(unix.Mknod(filepath.Join(top, "var"), unix.S_IFCHR, 0), os.Chmod(filepath.Join(top, "both"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, how := range api.Compressions() {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			p := newPodman(t)
			file := filepath.Join(p.dir, "archive")
			to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
			if err == nil {
				err = errors.Join(f.Export(t.Context(), "team/box:1", to, image.ExportOptions{Compression: how}), to.Close())
			}
			if err != nil {
				t.Fatal("needs root: ", err)
			}
			if out := p.do("load", "--input", file); !strings.Contains(out, "team/box:1") {
				t.Errorf("loaded %q", out)
			}
			const look = `echo $GREETING $(id -un) $(pwd) $(cat /both) $(stat -c %u:%g /both); [ -e /var ] || echo no var`
			out := p.do("run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", "team/box:1", "sh", "-c", look)
			if want := "hello user /home/user box 1000:100\nno var\n"; out != want {
				t.Errorf("it printed %q, want %q", out, want)
			}
		})
	}
}
