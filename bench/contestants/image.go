package contestants

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The number of layers beside the root file system, and of the files in each.
const (
	moreLayers = 4
	layerFiles = 100
	fileSize   = 10 << 10
)

// makeImage writes a docker archive of an image with five layers: the root
// file system, and four with some files.
func makeImage(file, rootfs string) error {
	var base bytes.Buffer
	w := tar.NewWriter(&base)
	if err := errors.Join(w.AddFS(os.DirFS(rootfs)), w.Close()); err != nil {
		return err
	}
	tars := [][]byte{base.Bytes()}
	for i := range moreLayers {
		layer, err := moreLayer(i)
		if err != nil {
			return err
		}
		tars = append(tars, layer)
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return err
	}
	for _, t := range tars {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(t)), nil })
		if err != nil {
			return err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return err
		}
	}
	tag, err := name.NewTag(LabImage)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, tag, image)
}

// moreLayer returns a tar with files of its own, and with one that all such
// layers have.
func moreLayer(n int) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	names := []string{"etc/layer"}
	for i := range layerFiles {
		names = append(names, fmt.Sprintf("usr/share/layer%d/file%d", n, i))
	}
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: fileSize, Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(bytes.Repeat([]byte{byte('a' + n)}, fileSize)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
