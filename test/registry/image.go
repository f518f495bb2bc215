package registry

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sandbox/test/rootfs"
)

// Busybox returns an image of Debian's busybox-static in two layers: the system,
// and its user's home with a file.
func Busybox(t testing.TB) v1.Image {
	t.Helper()
	system := rootfs.Busybox(t)
	img, err := mutate.AppendLayers(empty.Image, dir(t, system, "bin", "sbin", "usr", "etc", "dev", "proc", "sys", "run", "var", "tmp", "root"), dir(t, system, "home"))
	if err != nil {
		t.Fatal(err)
	}
	return configured(t, img, func(c *v1.Config) {
		c.Env, c.WorkingDir, c.User, c.Cmd = []string{"GREETING=hello"}, "/home/user", "user", []string{"sh"}
	})
}

// Deep returns busybox with so many layers, of which each but the lowest two has a file.
func Deep(t testing.TB, layers int) v1.Image {
	t.Helper()
	img := Busybox(t)
	for i := 2; i < layers; i++ {
		var file bytes.Buffer
		tw := tar.NewWriter(&file)
		err := errors.Join(tw.WriteHeader(&tar.Header{Name: fmt.Sprint("file", i), Typeflag: tar.TypeReg, Mode: 0o644}), tw.Close())
		if err != nil {
			t.Fatal(err)
		}
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil })
		if err == nil {
			img, err = mutate.AppendLayers(img, l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// Commands returns images of busybox by what each has of a command of its own.
func Commands(t testing.TB) map[string]v1.Image {
	t.Helper()
	entrypoint := []string{"/bin/sh", "-c", "echo from Entrypoint ${0#/bin/sh} $*"}
	images, busybox := map[string]v1.Image{}, Busybox(t)
	for name, c := range map[string]v1.Config{
		"cmd": {Cmd: []string{"echo", "from Cmd"}}, "entrypoint": {Entrypoint: entrypoint},
		"both": {Entrypoint: entrypoint, Cmd: []string{"and", "Cmd"}}, "no-command": {},
		"settings": {Cmd: []string{"/bin/sh", "-c", "echo $GREETING $(id -un) $(pwd)"}},
	} {
		images[name] = configured(t, busybox, func(own *v1.Config) { own.Entrypoint, own.Cmd = c.Entrypoint, c.Cmd })
	}
	return images
}

// configured returns an image for this machine, with its configuration changed.
func configured(t testing.TB, img v1.Image, change func(*v1.Config)) v1.Image {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	change(&config.Config)
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

// dir returns a layer of some of what is in a directory.
func dir(t testing.TB, dir string, names ...string) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		cmd := exec.Command("tar", append([]string{"-c", "-C", dir, "--sort=name"}, names...)...)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		return waiting{out, cmd}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// waiting is a program's output; its end is the program's.
type waiting struct {
	io.Reader
	cmd *exec.Cmd
}

func (w waiting) Close() error {
	_, _ = io.Copy(io.Discard, w.Reader)
	return w.cmd.Wait()
}
