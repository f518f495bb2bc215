package image_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"sandbox/api"
	"sandbox/core/image"
	"sandbox/test/podman"
	"sandbox/test/registry"
)

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
			p := podman.New(t)
			file := filepath.Join(p.Dir, "archive")
			to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
			if err == nil {
				err = errors.Join(f.Export(t.Context(), "team/box:1", to, image.ExportOptions{Compression: how}), to.Close())
			}
			if err != nil {
				t.Fatal("needs root: ", err)
			}
			if out := p.Do("load", "--input", file); !strings.Contains(out, "team/box:1") {
				t.Errorf("loaded %q", out)
			}
			const look = `echo $GREETING $(id -un) $(pwd) $(cat /both) $(stat -c %u:%g /both); [ -e /var ] || echo no var`
			out := p.Run("team/box:1", "sh", "-c", look)
			if want := "hello user /home/user box 1000:100\nno var\n"; out != want {
				t.Errorf("it printed %q, want %q", out, want)
			}
		})
	}
}
